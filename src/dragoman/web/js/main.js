// The page comes alive: a store, an app, the manuscript beside the desk, and a first translation.

import { DEFAULTS, makeApp } from "./app.js";
import { createDesk } from "./desk.js";
import { el } from "./dom.js";
import { createLesson } from "./lesson.js";
import { createManuscript } from "./manuscript.js";
import { fromHash } from "./permalink.js";
import { createShare } from "./share.js";
import { openStore } from "./store.js";
import { createTheme } from "./theme.js";

async function start() {
  const app = makeApp(openStore());
  const tools = document.getElementById("tools");
  createManuscript(document.getElementById("manuscript"), app);
  const desk = createDesk(document.getElementById("desk"), app);
  createLesson(document.getElementById("manuscript"), tools, app);
  createShare(tools, app, desk);
  createTheme(tools, app);
  document.getElementById("skip").addEventListener("click", () => desk.focus());
  announce(app);

  await app.begin();
  window.addEventListener("hashchange", () => {
    const fresh = { ...DEFAULTS, ...fromHash(location.hash) };
    app.translate({ ...fresh, source: fresh.source ?? app.state.source, target: fresh.target ?? app.state.target });
  });
}

// The translation is read out when it arrives, and each piece when it is stepped to.
function announce(app) {
  const live = document.getElementById("live");
  app.onChange((changed) => {
    if (app.error) live.textContent = app.error;
    else if (changed.has("meta")) live.replaceChildren("Translation: ", el("bdi", { text: app.meta.translation.text }));
    else if (app.meta && changed.has("step") && app.state.step !== null) {
      const { chosen } = app.meta.steps[app.step];
      live.textContent = `Piece ${app.step + 1} of ${app.lastStep + 1}: ${chosen.piece}`;
    }
  });
}

start();
