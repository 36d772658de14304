import { defineConfig } from "vitest/config";

/** Unit tests lie beside what they test. Those in e2e want a browser and a server, and have a runner of their own. */
export default defineConfig({
  test: { include: ["{src,fonts,scripts}/**/*.test.{ts,tsx}"] },
});
