/** The tests' own `test`: a server per worker, and a page that is signed in and fails the test when it breaks. */
import { test as base, expect, type Page } from "@playwright/test";
import { RECIPES, Server } from "./server";

interface Each {
  /** What the page complained of; a test that expects some of it takes it out. */
  readonly complaints: string[];
}

interface Worker {
  readonly server: Server;
}

export const test = base.extend<Each, Worker>({
  server: [
    // biome-ignore lint/correctness/noEmptyPattern: the first argument says what a fixture needs, and this one needs nothing
    async ({}, use) => {
      const server = await Server.start({ app: RECIPES });
      await use(server);
      await server.stop();
    },
    { scope: "worker", timeout: 90_000 },
  ],
  // biome-ignore lint/correctness/noEmptyPattern: see above
  complaints: async ({}, use) => {
    await use([]);
  },
  page: async ({ page, server, complaints }, use) => {
    listen(page, complaints);
    await signIn(page, server);
    await use(page);
    expect(complaints, "what the page complained of").toEqual([]);
  },
});

/** Note every error of a page. */
export function listen(page: Page, complaints: string[]): void {
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (said) => {
    if (said.type() === "error") complaints.push(`${said.text().slice(0, 300)} (${said.location().url})`);
  });
}

/** The browser of this page has a session from now on. */
export async function signIn(page: Page, server: Server, key = server.key): Promise<void> {
  const answer = await page.context().request.post(server.at("/session"), { data: { key } });
  expect(answer.status(), await answer.text()).toBe(201);
}

/** Every step and every job ends some time: wait for it at the API, not on the page. */
export async function ended(server: Server, job: string, status = "COMPLETED"): Promise<void> {
  await expect.poll(() => server.status(job), { timeout: 30_000 }).toBe(status);
}

export { expect };
