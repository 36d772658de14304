"""Virtual environments of the peers, created on demand from pinned requirements: their versions conflict."""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE / ".venvs"
PINS = HERE / "requirements"


def python_of(name: str) -> Path:
    """Return the interpreter of a peer's environment; install it if its pins have changed."""
    pins = PINS / f"{name}.txt"
    folder = FOLDER / name
    python = folder / "bin" / "python"
    stamp = folder / ".pins"
    if stamp.exists() and stamp.read_text() == pins.read_text():
        return python
    print(f"installing {name} into {folder}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", pins]
    subprocess.run(install, check=True, stdout=sys.stderr)
    stamp.write_text(pins.read_text())
    return python


def npm_of(name: str) -> Path:
    """Return the `node_modules/.bin` folder of a server from npm, installed from `requirements/NAME.json`."""
    pins = PINS / f"{name}.json"
    folder = FOLDER / name
    stamp = folder / "package.json"
    if not (stamp.exists() and stamp.read_text() == pins.read_text() and (folder / "node_modules").exists()):
        print(f"installing {name} into {folder}", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        stamp.write_text(pins.read_text())
        install = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock"]
        subprocess.run(install, cwd=folder, check=True, stdout=sys.stderr)
    return folder / "node_modules" / ".bin"
