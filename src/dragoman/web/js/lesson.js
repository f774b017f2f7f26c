// The guided lesson: a card beside the translation that walks through the views.

import { button } from "./controls.js";
import { el, replace } from "./dom.js";
import { latest } from "./latest.js";
import { STEPS } from "./lesson_steps.js";

export function createLesson(root, tools, app) {
  const title = el("h2", {});
  const count = el("p", { class: "fine lesson-count" });
  const text = el("p", { class: "lesson-text" });
  const marks = el("div", { class: "marks", "aria-hidden": "true" }, ...STEPS.map(() => el("span", {})));
  const go = (lesson) => app.set({ lesson });
  const back = button("Back", () => go(app.state.lesson - 1), { name: "lesson-back" });
  const on = button("Next", () => (app.state.lesson + 1 < STEPS.length ? go(app.state.lesson + 1) : go(null)), { kind: "main", name: "lesson-next" });
  const close = button("×", () => go(null), { kind: "quiet sign", name: "lesson-close", "aria-label": "End the lesson" });
  const card = el("aside", { class: "lesson", "aria-label": "Lesson", hidden: true },
    el("div", { class: "lesson-head" }, el("div", {}, count, title), close), text, marks, el("div", { class: "row between" }, back, on));
  const start = button("Lesson", () => go(app.state.lesson === null ? 0 : null), { name: "lesson", title: "How attention works, in fourteen steps, on your sentence" });
  root.append(card);
  tools.append(start);
  let told = "";

  const tell = latest(async (index) => {
    const [state, ...words] = await STEPS[index][1](app);
    return () => {
      title.textContent = STEPS[index][0];
      count.textContent = `${index + 1} of ${STEPS.length}`;
      replace(text, ...words);
      [...marks.children].forEach((mark, i) => mark.classList.toggle("done", i <= index));
      back.disabled = index === 0;
      on.textContent = index + 1 < STEPS.length ? "Next" : "Finish";
      card.dataset.step = String(index);
      app.set(state);
    };
  }, (problem) => replace(text, problem.textContent));

  app.onChange((changed) => {
    const { lesson } = app.state;
    start.setAttribute("aria-pressed", String(lesson !== null));
    start.disabled = !app.meta;
    start.hidden = app.meta?.model.architecture === "recurrent";
    card.hidden = lesson === null || !app.meta || start.hidden;
    document.body.classList.toggle("in-lesson", !card.hidden);
    if (card.hidden) {
      told = "";
      delete card.dataset.step;
      return;
    }
    const index = Math.min(lesson, STEPS.length - 1);
    const now = `${index}`;
    if (now !== told || changed.has("meta")) {
      told = now;
      tell(index);
    }
  });
}
