// Paper by day, night when the system or the person says so.

import { button } from "./controls.js";

const NEXT = { auto: "light", light: "dark", dark: "auto" };
const SIGNS = { auto: "◐", light: "☀", dark: "☾" };

export function createTheme(tools, app) {
  let theme = remembered();
  const toggle = button("", () => {
    theme = NEXT[theme];
    keep(theme);
    show();
  }, { kind: "quiet sign", name: "theme" });

  function show() {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    toggle.textContent = SIGNS[theme];
    toggle.title = `Colours: ${theme === "auto" ? "as the system" : theme}. Click to change.`;
    toggle.setAttribute("aria-label", toggle.title);
    app.set({ theme: document.documentElement.dataset.theme ?? "auto" });
  }

  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.set({ theme: `auto ${Date.now()}` }));
  tools.append(toggle);
  show();
}

// A file opened from disk, or a strict browser, may have no storage: then the choice lasts as long as the page.
function remembered() {
  try {
    const theme = localStorage.getItem("dragoman-theme");
    return theme in NEXT ? theme : "auto";
  } catch {
    return "auto";
  }
}

function keep(theme) {
  try {
    localStorage.setItem("dragoman-theme", theme);
  } catch {
    // nothing to remember it in
  }
}
