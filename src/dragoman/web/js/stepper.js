// Walk through the translation: play, pause, a scrubber, and the arrow keys anywhere on the page.

import { el } from "./dom.js";
import { button } from "./controls.js";

const PACE_MS = 700;
const TYPING = "input, textarea, select, [role=tab]";

export function createStepper(app) {
  let timer = null;
  const go = (step) => app.set({ step: step >= app.lastStep ? null : Math.max(step, 0) });
  const on = () => go(app.step + 1);
  const back = () => go(app.step - 1);

  function pause() {
    clearInterval(timer);
    timer = null;
    show();
  }

  function play() {
    if (app.state.step === null) go(0);
    timer = setInterval(() => {
      on();
      if (app.state.step === null) pause();
    }, PACE_MS);
    show();
  }

  const toggle = () => (timer === null ? play() : pause());
  const start = button("⇤", () => { pause(); go(0); }, { kind: "quiet sign", name: "first", "aria-label": "First piece" });
  const previous = button("←", () => { pause(); back(); }, { kind: "quiet sign", name: "back", "aria-label": "Piece before" });
  const playing = button("▶", toggle, { kind: "quiet sign", name: "play", "aria-label": "Play" });
  const next = button("→", () => { pause(); on(); }, { kind: "quiet sign", name: "on", "aria-label": "Next piece" });
  const scrubber = el("input", { type: "range", min: 0, step: 1, class: "scrubber", "aria-label": "Piece of the translation", on: {
    input: () => {
      const wanted = Number(scrubber.value); // pausing shows where we are, which sets it
      pause();
      go(wanted);
    },
  } });
  const count = el("output", { class: "count" });

  function show() {
    playing.textContent = timer === null ? "▶" : "❚❚";
    playing.setAttribute("aria-label", timer === null ? "Play" : "Pause");
    if (!app.meta) return;
    scrubber.max = app.lastStep;
    scrubber.value = app.step;
    count.textContent = `${app.step + 1} / ${app.lastStep + 1}`;
    start.disabled = previous.disabled = app.step === 0;
    next.disabled = app.step === app.lastStep;
  }

  document.addEventListener("keydown", (event) => {
    if (!app.meta || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest?.(TYPING) || document.querySelector("dialog[open]")) return;
    if (event.key === "ArrowRight") on();
    else if (event.key === "ArrowLeft") back();
    else if (event.key === " " && event.target === document.body) toggle();
    else return;
    if (event.key !== " ") pause();
    event.preventDefault();
  });
  app.onChange((changed) => {
    if (changed.has("meta") && timer !== null) pause();
    show();
  });
  return el("div", { class: "stepper", role: "group", "aria-label": "Steps" }, start, previous, playing, next, scrubber, count);
}
