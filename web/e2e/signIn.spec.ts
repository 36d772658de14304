import { expect, test } from "./app";
import { RECIPES, Server } from "./server";

test("a key signs in, the address stays, and signing out ends it", async ({ page, server, complaints }) => {
  await page.context().clearCookies();
  await page.goto(server.at("/recipes"));
  await page.getByLabel("API key").fill("wl_nonsense");
  await page.getByRole("button", { name: "Sign in" }).click();
  await expect(page.getByRole("alert")).toBeVisible();
  await page.getByLabel("API key").fill(server.key);
  await page.getByLabel("API key").press("Enter");
  await expect(page.getByRole("heading", { name: "Recipes", level: 1 })).toBeVisible();
  expect(page.url()).toBe(server.at("/recipes"));
  // Neither the key nor the cookie can be read by what runs in the page.
  expect(
    await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }) + document.cookie),
  ).not.toMatch(/wl_|windlass_session/);

  await page.getByRole("button", { name: /Signed in as/ }).click();
  await page.getByRole("menuitem", { name: "Sign out" }).click();
  await expect(page.getByRole("heading", { name: "Sign in to Windlass" })).toBeVisible();
  const refused = await page.context().request.get(`${server.url}/jobs`);
  expect(refused.status()).toBe(401);
  // A browser says so itself when it is answered 401.
  expect(complaints.filter((text) => !text.includes("401"))).toEqual([]);
  complaints.length = 0;
});

test("a change without the session's own word is refused, and nothing is done", async ({ page, server }) => {
  const job = await server.submit("errand");
  const { request } = page.context();
  const bare = await request.post(`${server.url}/jobs/${job}/cancel`, { data: {} });
  expect(bare.status()).toBe(403);
  expect((await bare.json()).code).toBe("bad_csrf");
  const wrong = await request.post(`${server.url}/jobs/${job}/cancel`, {
    data: {},
    headers: { "X-Windlass-CSRF": "of another session" },
  });
  expect((await wrong.json()).code).toBe("bad_csrf");
  expect(await server.status(job)).not.toBe("CANCELLED");
  const session = await (await request.get(server.at("/session"))).json();
  const right = await request.post(`${server.url}/jobs/${job}/cancel`, {
    data: {},
    headers: { "X-Windlass-CSRF": session.csrf },
  });
  expect(right.ok()).toBe(true);
  expect(await server.status(job)).toBe("CANCELLED");
});

test("the printed link signs in once, and leaves no token in the address", async ({ browser }) => {
  const server = await Server.start({ app: RECIPES, words: ["--no-demo"] });
  try {
    const first = await browser.newContext();
    const page = await first.newPage();
    await page.goto(server.link);
    await expect(page.getByRole("navigation", { name: "Main" })).toBeVisible();
    await expect.poll(() => page.url()).not.toContain("token");
    expect((await first.cookies()).find((one) => one.name.startsWith("windlass_session"))).toMatchObject({
      httpOnly: true,
      sameSite: "Strict",
    });
    await first.close();

    const second = await browser.newContext();
    const late = await second.newPage();
    await late.goto(server.link);
    await expect(late.getByRole("heading", { name: "Sign in to Windlass" })).toBeVisible();
    await second.close();
  } finally {
    await server.stop();
  }
});
