// The page comes alive: a store, an app, the manuscript beside the desk, and a first translation.

import { DEFAULTS, makeApp } from "./app.js";
import { createDesk } from "./desk.js";
import { announce, bdi } from "./dom.js";
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
  readOut(app);

  await app.begin();
  window.addEventListener("hashchange", () => {
    const fresh = { ...DEFAULTS, ...fromHash(location.hash) };
    app.translate({ ...fresh, source: fresh.source ?? app.state.source, target: fresh.target ?? app.state.target });
  });
}

// The translation is read out when it arrives, and each piece when it is stepped to.
function readOut(app) {
  const inTarget = (text) => bdi(text, { lang: app.meta.request.target });
  app.onChange((changed) => {
    if (app.error) announce(app.error);
    else if (changed.has("meta")) announce("Translation: ", inTarget(app.meta.translation.text));
    else if (app.meta && changed.has("step") && app.state.step !== null) {
      const { chosen } = app.meta.steps[app.step];
      announce(`Piece ${app.step + 1} of ${app.lastStep + 1}: `, inTarget(chosen.piece));
    }
  });
}

start();
