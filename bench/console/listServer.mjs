/**
 * A stand-in for the service with invented jobs: it serves the built console, pages of `GET /jobs`, and the stream. The
 * stream sends the changes ten times a second, as the service does. There is no database and no engine, so only the page is
 * measured.
 */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2" };
const RECIPES = ["index-corpus", "transcribe", "ocr-batch", "sync-crm", "nightly-report"];
const STATES = ["QUEUED", "PROCESSING", "PROCESSING", "PROCESSING", "COMPLETED", "FAILED", "CANCELLED"];
const TICK_MS = 100;
const SESSION = {
  caller: "bench",
  role: "admin",
  scopes: ["jobs:read", "jobs:write", "admin"],
  csrf: "bench",
  expires_at: "2100-01-01T00:00:00Z",
  version: "0",
  console: "full",
  demo: null,
};

export async function startListServer(files, count) {
  const began = Date.now();
  const jobs = Array.from({ length: count }, (_, i) => jobOf(count - i, began - i * 1_000));
  const streams = new Set();
  const sent = { changes: 0 };
  let perSecond = 0;
  let owed = 0;
  const place = () => `jobs@1.${sent.changes}`;

  const tick = setInterval(() => {
    owed += (perSecond * TICK_MS) / 1_000;
    const changed = new Set();
    for (; owed >= 1 && streams.size > 0; owed -= 1) changed.add(Math.floor(Math.random() * count));
    if (changed.size === 0) return;
    for (const i of changed) change(jobs[i]);
    sent.changes += changed.size;
    const data = JSON.stringify({ jobs: [...changed].map((i) => jobs[i]) });
    for (const stream of streams) stream.write(`event: patch\nid: ${place()}\ndata: ${data}\n\n`);
  }, TICK_MS);

  const follow = (request, answer) => {
    answer.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store" });
    answer.write(`event: open\nid: ${place()}\ndata: ${JSON.stringify({ cursor: place() })}\n\n`);
    streams.add(answer);
    request.on("close", () => streams.delete(answer));
  };
  const list = (params, answer) => {
    const from = Number(params.get("cursor") ?? 0);
    const limit = Number(params.get("limit") ?? 50);
    const items = jobs.slice(from, from + limit);
    json(answer, { items, next: from + limit < count ? String(from + limit) : null });
  };

  const server = createServer((request, answer) => {
    const url = new URL(request.url, "http://bench");
    if (url.pathname === "/console/session") json(answer, SESSION);
    else if (url.pathname === "/console/stream") follow(request, answer);
    else if (url.pathname === "/jobs") list(url.searchParams, answer);
    else if (url.pathname.startsWith("/console")) file(files, url.pathname.slice("/console/".length), answer);
    else json(answer, { title: "Not here", status: 404, code: "not_found" }, 404);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    job: (id) => jobs.find((job) => job.job_id === id),
    changes: () => sent.changes,
    change: (rate) => {
      perSecond = rate;
      owed = 0;
    },
    close: () => {
      clearInterval(tick);
      server.closeAllConnections();
      return new Promise((done) => server.close(done));
    },
  };
}

/** Returns a job with as many bytes as a job of the service. */
function jobOf(no, createdAt) {
  const hex = no.toString(16).padStart(12, "0");
  const id = `019a0000-0000-7000-8000-${hex}`;
  const at = new Date(createdAt).toISOString();
  const names = ["self", "input", "output", "graph", "steps", "events", "why", "costs", "stream"];
  const job = {
    job_id: id, recipe: RECIPES[no % RECIPES.length], recipe_version: 3, plan: "a".repeat(64), status: "QUEUED",
    is_paused: false, caller: `team-${no % 7}`, priority: 0, labels: { corpus: `c${no % 40}`, tier: "gold" },
    idempotency_key: null, correlation_id: null, progress_pct: null, progress_message: null, steps_total: 40,
    steps_open: 40, steps_failed: 0, failed_step: null, error: null, parent_job: null, retry_of: null, created_at: at,
    started_at: at, finished_at: null, updated_at: at, deadline_at: null, expires_at: at, deleted_at: null,
    trace_id: id.replaceAll("-", ""), links: Object.fromEntries(names.map((name) => [name, `/jobs/${id}/${name}`])),
    seq: 1,
  }; // biome-ignore format: one document
  change(job);
  return job;
}

function change(job) {
  job.seq += 1;
  job.status = STATES[Math.floor(Math.random() * STATES.length)];
  job.steps_open = job.status === "COMPLETED" ? 0 : Math.floor(Math.random() * 40);
  const isOver = job.status !== "QUEUED" && job.status !== "PROCESSING";
  job.finished_at = isOver ? new Date().toISOString() : null;
  job.error = job.status === "FAILED" ? { code: "handler_failed", message: `page ${job.seq} has no text layer` } : null;
  job.failed_step = job.status === "FAILED" ? "extract" : null;
  job.progress_message = isOver ? null : `page ${job.seq} of 400`;
}

function json(answer, body, status = 200) {
  answer.writeHead(status, { "Content-Type": "application/json" });
  answer.end(JSON.stringify(body));
}

function file(folder, path, answer) {
  const name = normalize(path).replace(/^(\.\.[/\\])+/, "");
  const found = extname(name) === "" ? "index.html" : name;
  try {
    const body = readFileSync(join(folder, found));
    answer.writeHead(200, { "Content-Type": TYPES[extname(found)] ?? "application/octet-stream" });
    answer.end(body);
  } catch {
    answer.writeHead(404).end();
  }
}
