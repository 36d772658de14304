/** A real `windlass up`: its own home, its own PostgreSQL, a free port, the console that was built. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const ROOT = resolve(import.meta.dirname, "../..");
const WINDLASS = process.env.WINDLASS_BIN ?? join(ROOT, ".venv/bin/windlass");
/** The package itself, for a test that installs it elsewhere. */
export const PACKAGE = join(ROOT, "src/windlass");
const BUILD = process.env.WINDLASS_CONSOLE_DIR ?? join(ROOT, "build/console");
export const RECIPES = join(import.meta.dirname, "recipes.py");
const START_MAX_MS = 60_000;
const STOP_MAX_MS = 30_000;

export interface Wish {
  /** The app to serve; without one, the examples, and then with the demo. */
  readonly app?: string;
  readonly words?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export class Server {
  readonly home: string;
  url = "";
  /** The line that a person would click on. */
  link = "";
  private child: ChildProcess | undefined;
  private said: string[] = [];
  private readonly workers: ChildProcess[] = [];
  private readonly wish: Wish;

  private constructor(wish: Wish) {
    this.wish = wish;
    this.home = mkdtempSync(join(tmpdir(), "windlass-e2e-"));
    // Under root PostgreSQL runs as another user, which must be able to enter the folder.
    chmodSync(this.home, 0o711);
  }

  static async start(wish: Wish = {}): Promise<Server> {
    const server = new Server(wish);
    try {
      await server.run("127.0.0.1:0");
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  get key(): string {
    return readFileSync(join(this.home, "key"), "utf8").trim();
  }

  /** What makes the recipe `shopping` succeed, once it is there. */
  get mended(): string {
    return join(this.home, "mended");
  }

  private get env(): Record<string, string> {
    return { ...outside(), WINDLASS_CONSOLE_DIR: BUILD, E2E_MENDED: this.mended, ...this.wish.env };
  }

  at(path: string): string {
    return `${this.url}/console${path}`;
  }

  /** Ask the API itself, past the console. */
  async ask<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await fetch(this.url + path, {
      method,
      headers: { "X-API-Key": this.key, ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  async submit(recipe: string, inputs: object = {}, more: object = {}): Promise<string> {
    return (await this.ask<{ job_id: string }>("POST", "/jobs", { recipe, inputs, ...more })).job_id;
  }

  async status(job: string): Promise<string> {
    return (await this.ask<{ status: string }>("GET", `/jobs/${job}`)).status;
  }

  /** SIGKILL, as a machine that loses its power: PostgreSQL and the data stay. */
  async kill(): Promise<void> {
    const child = this.child;
    if (child === undefined || child.exitCode !== null) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    await gone;
    this.child = undefined;
  }

  /** The same home at the same address, after `kill`. */
  async restart(): Promise<void> {
    await this.run(new URL(this.url).host);
  }

  /** A worker beside it, which goes on when the server is gone. */
  async worker(): Promise<void> {
    const child = spawn(WINDLASS, ["--home", this.home, "worker", RECIPES], {
      cwd: this.home,
      env: this.env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.workers.push(child);
    for await (const line of createInterface({ input: child.stderr })) if (line.includes("Ctrl-C stops")) return;
    throw new Error("the worker ended");
  }

  /** Ask the database past everything, also while there is no server. */
  async look<T>(...words: readonly string[]): Promise<T> {
    const asked = promisify(execFile);
    const { stdout } = await asked(WINDLASS, ["--home", this.home, ...words, "--json"], { env: this.env });
    return JSON.parse(stdout) as T;
  }

  async stop(): Promise<void> {
    for (const worker of this.workers.splice(0)) await ended(worker);
    if (this.child !== undefined) await ended(this.child);
    this.child = undefined;
    this.endPostgres();
    rmSync(this.home, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  private endPostgres(): void {
    const path = join(this.home, "pg/postmaster.pid");
    if (!existsSync(path)) return;
    const pid = Number(readFileSync(path, "utf8").split("\n")[0]);
    if (pid > 0) process.kill(pid, "SIGQUIT");
  }

  private async run(listen: string): Promise<void> {
    const words = [...(this.wish.app === undefined ? [] : [this.wish.app]), ...(this.wish.words ?? [])];
    this.said = [];
    const child = spawn(WINDLASS, ["--home", this.home, "up", ...words, "--listen", listen], {
      cwd: this.home,
      env: this.env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.child = child;
    child.stderr.setEncoding("utf8").on("data", (text: string) => this.said.push(text));
    await new Promise<void>((ready, fail) => {
      const late = setTimeout(() => fail(new Error(`up was not ready: ${this.said.join("\n")}`)), START_MAX_MS);
      child.once("exit", (code) => fail(new Error(`up ended with ${code}: ${this.said.join("\n")}`)));
      createInterface({ input: child.stdout }).on("line", (line) => {
        this.said.push(line);
        const [word = "", text = ""] = line.replace("✓", "").trim().split(/\s+/);
        if (word === "api") this.url = text;
        if (word === "Console") this.link = text;
        if (word === "ready") {
          clearTimeout(late);
          ready();
        }
      });
    });
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), STOP_MAX_MS);
  await gone;
  clearTimeout(late);
}

/** What a person's shell may hold must not change what is tested. */
function outside(): Record<string, string> {
  const kept = ["PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH"];
  return Object.fromEntries(kept.flatMap((name) => (process.env[name] ? [[name, process.env[name] as string]] : [])));
}
