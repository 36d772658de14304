// Before the first paint, so that nobody sees the wrong theme for a moment. A file, as the page's policy allows no inline code.
var kept = null;
var root = document.documentElement;
try {
  kept = localStorage.getItem("windlass.theme");
  root.dataset.density = localStorage.getItem("windlass.density") || "cosy";
} catch (_) {}
var chosen = kept === "dark" || kept === "light";
root.classList.toggle("dark", chosen ? kept === "dark" : !matchMedia("(prefers-color-scheme: light)").matches);
