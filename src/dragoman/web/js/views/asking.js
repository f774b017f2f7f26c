// Answers about one translation, and what becomes of the old one meanwhile.

import { note } from "../controls.js";
import { replace } from "../dom.js";
import { latest } from "../latest.js";

// Run `work(meta, ...)` for the translation at hand and then the drawing that it returns. While it is awaited its place
// is marked busy; an answer that comes when the page shows another translation is dropped.
export function asking(app, place, work, fail = (problem) => replace(place, problem)) {
  const run = latest(async (meta, ...given) => {
    const draw = await work(meta, ...given).catch((error) => () => fail(note(error.message)));
    return () => {
      place.removeAttribute("aria-busy");
      if (meta === app.meta) draw();
    };
  }, fail);
  return (...given) => {
    place.setAttribute("aria-busy", "true");
    return run(app.meta, ...given);
  };
}
