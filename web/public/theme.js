// Before the first paint, so that nobody sees the wrong theme for a moment. A file, as the page's policy allows no inline code.
var kept = null;
try {
  kept = localStorage.getItem("windlass.theme");
} catch (_) {}
var dark = kept ? kept === "dark" : !matchMedia("(prefers-color-scheme: light)").matches;
document.documentElement.classList.toggle("dark", dark);
