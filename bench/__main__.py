"""Measure Windlass and its peers side by side: `python -m bench --help`."""

import argparse
import asyncio
import contextlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.measures.bare_sql import bare_sql
from bench.measures.bells import bells
from bench.measures.fan_out import fan_out
from bench.measures.held import held
from bench.measures.history import history
from bench.measures.http import http
from bench.measures.killing import killing
from bench.measures.latency import latency
from bench.measures.listing import listing
from bench.measures.mixed import mixed
from bench.measures.parked import parked
from bench.measures.polls import polls
from bench.measures.run import Run
from bench.measures.scan import scan
from bench.measures.streams import streams
from bench.measures.throughput import chains, jobs
from bench.measures.verdict import verdict
from bench.measures.waiting import waiting
from bench.measures.webhooks import webhooks
from bench.report import document, show
from bench.results import Results
from bench.roster import PEERS, before, entry
from bench.servers.postgres import Postgres
from bench.servers.redis import Redis
from bench.servers.restate import Restate
from bench.session import Servers

MEASURES: dict[str, Callable[[Run], Awaitable[None]]] = {
    "L": bare_sql,
    "A": jobs,
    "C": chains,
    "D": fan_out,
    "B": latency,
    "N": bells,
    "F": killing,
    "P": parked,
    "H": history,
    "K": held,
    "M": mixed,
    "S": http,
    "E": streams,
    "G": listing,
    "X": waiting,
    "W": webhooks,
    "Q": polls,
    "V": verdict,
    "Y": scan,
}
QUICK_SCALE = 0.05
RESULTS = Path(__file__).parent / "results"


def options() -> argparse.Namespace:
    """Parse the command line."""
    names = ",".join(peer.name for peer in PEERS)
    parser = argparse.ArgumentParser(prog="bench", description="Measure Windlass and its peers side by side.")
    parser.add_argument("--only", default="".join(MEASURES), help="letters of the tests: L limit, A one-step jobs, "
                        "C chains, D fan-out, B latency, N bells, F kill, P parked, H history, K held steps, "
                        "M plain steps beside a provider's, S submits over HTTP, "
                        "E streams, G lists, X work at a provider, W webhooks in, Q polls, "
                        "V verdicts, Y scans")  # fmt: skip
    parser.add_argument("--peers", default=names, help=f"which peers, of {names}; 'none' for Windlass alone")
    parser.add_argument("--before", type=Path, help="a checkout of an earlier version, measured in turn with this one")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies every count")
    parser.add_argument("--repeats", type=int, default=3, help="rounds; each measures every system once")
    parser.add_argument("--extra", type=int, default=0, help="more rounds for systems whose runs were disturbed")
    parser.add_argument("--patience", type=float, default=0.0, help="seconds to wait for a quiet machine before a run")
    parser.add_argument("--quick", action="store_true", help=f"one round at scale {QUICK_SCALE}: does it work at all")
    parser.add_argument("--json", type=Path, help="where every run is written; else a new file in bench/results")
    parser.add_argument("--keep", action="store_true", help="leave the temporary folder (logs) in place")
    return parser.parse_args()


def start_servers(folder: Path, wanted: set[str | None], results: Results) -> Servers:
    """Start PostgreSQL, and the servers of the chosen peers. If a server does not start, that is noted and its peer
    fails.
    """
    postgres = Postgres(folder / "postgres")
    postgres.start()
    redis = Redis(folder / "redis") if "redis" in wanted else None
    if redis:
        redis.start()
    restate = None
    if "restate" in wanted:
        try:
            restate = Restate(folder / "restate-server")
            restate.start()
            restate.stop()
        except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
            restate = None
            results.fail("all", "restate", f"no server: {error}")
    return Servers(folder, postgres, redis, restate)


async def measure(run: Run, letters: str) -> None:
    """Run the chosen tests, in their order."""
    try:
        for letter, test in MEASURES.items():
            if letter in letters.upper():
                try:
                    await test(run)
                except Exception as error:  # one failing test must not cost the figures of the others
                    traceback.print_exc()
                    run.results.fail(letter, "bench", f"{type(error).__name__}: {error}")
    finally:
        run.close()


def main() -> int:
    """Run and report; return 0 for any figures, since a slow machine is not a fault."""
    chosen = options()
    if chosen.quick:
        chosen.scale, chosen.repeats = min(chosen.scale, QUICK_SCALE), 1
    unknown = set(chosen.only.upper()) - set(MEASURES)
    try:
        peers = tuple(entry(name) for name in chosen.peers.split(",") if name not in ("", "none"))
        if chosen.before is not None:
            peers = (*peers, before(chosen.before.resolve()))
        if unknown:
            raise ValueError(f"no test is called {', '.join(sorted(unknown))}; known: {', '.join(MEASURES)}")
    except ValueError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    # On SIGTERM the benchmark still stops its servers and reports its figures.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    started = time.strftime("%Y-%m-%d %H:%M:%S")
    folder = Path(tempfile.mkdtemp(prefix="windlass-bench-"))
    results = Results()
    servers = None
    try:
        servers = start_servers(folder, {peer.server for peer in peers}, results)
        if servers.restate is None:
            peers = tuple(peer for peer in peers if peer.server != "restate")
        run = Run(servers, peers, results, chosen.scale, chosen.repeats, chosen.extra, chosen.patience)
        asyncio.run(measure(run, chosen.only))
    except KeyboardInterrupt:
        print("interrupted: what was measured so far follows", file=sys.stderr)
    finally:
        for server in (servers.restate, servers.redis, servers.postgres) if servers else ():
            with contextlib.suppress(OSError, subprocess.SubprocessError):
                if server:
                    server.stop()
        if chosen.keep:
            print(f"logs: {folder}", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    show(results)
    about = {"started": started, "scale": chosen.scale, "repeats": chosen.repeats, "tests": chosen.only}
    out = chosen.json or RESULTS / f"{started.replace(' ', '-').replace(':', '')}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(document(results, about), indent=2) + "\n")
    print(f"every run: {out}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
