// The manuscript: the box to type in, the two texts in pieces, and the steps between them.

import { announce, bdi, el, inLanguage, replace, roving, said } from "./dom.js";
import { firstSentence } from "./app.js";
import { shown } from "./axes.js";
import { button, pick } from "./controls.js";
import { createStepper } from "./stepper.js";
import { fixed, percent } from "./numbers.js";

const LONG = 90; // pieces, from which on the type is smaller
const FIRST = "Hover over a word to see what the model looked at. ← and → walk through the translation, piece by piece.";

export function createManuscript(root, app) {
  const ask = createAsk(app);
  const source = el("p", { class: "line source", role: "group", "aria-label": "Source, in pieces" });
  const target = el("p", { class: "line target", role: "group", "aria-label": "Translation, in pieces" });
  const hint = el("p", { class: "hint", id: "hint", text: FIRST });
  const changes = el("p", { class: "changes" });
  const stepper = createStepper(app);
  root.append(ask, el("div", { class: "texts" }, source, target), stepper, hint, changes);
  const settleSource = roving(source, ".chip");
  const settleTarget = roving(target, ".chip");
  const lacking = el("p", { class: "note", id: "lacking", hidden: true });
  document.getElementById("desk").append(lacking);

  app.onChange((changed) => {
    root.classList.toggle("busy", app.busy);
    document.body.classList.toggle("plain", app.plain !== null);
    if (changed.has("plain")) {
      lacking.hidden = false;
      lacking.textContent = `This is the translation alone. To see how it was made, the server needs more: ${app.store.why}`;
      replace(inLanguage(target, app.state.target, app.plain), app.plain);
      announce("Translation: ", bdi(app.plain, { lang: app.state.target ?? "" }));
    }
    if (!app.meta) return;
    if (changed.has("meta")) {
      root.classList.toggle("long", app.meta.source.pieces.length + app.meta.target.pieces.length > LONG);
      inLanguage(source, app.meta.request.source, app.meta.source.text);
      inLanguage(target, app.meta.request.target, app.meta.target.text);
      write(source, app.meta.source, (index) => app.set({ query: index }), app, "source");
      write(target, app.meta.target, (index) => app.set({ step: index === app.lastStep ? null : index }), app, "target");
      settleSource();
      settleTarget();
    }
    mark(source, target, app);
    replace(hint, ...hintFor(app));
    replace(changes, ...changesOf(app));
  });
  app.onHover((word) => {
    for (const [side, line] of [["source", source], ["target", target]]) {
      const lit = new Set(word?.side === side ? word.pieces : []);
      for (const chip of line.querySelectorAll(".chip")) chip.classList.toggle("lit", lit.has(Number(chip.dataset.index)));
    }
  });
}

function createAsk(app) {
  const names = new Intl.DisplayNames(["en"], { type: "language", fallback: "code" });
  const called = (code) => { try { return names.of(code); } catch { return code; } };
  const text = el("textarea", {
    id: "text", rows: 2, dir: "auto", spellcheck: "false", autocomplete: "off", "aria-label": "Text to translate",
    placeholder: "Type a sentence",
  });
  const direction = el("select", { id: "direction", "aria-label": "Languages" });
  const go = el("button", { type: "submit", class: "main", text: "Translate" });
  const status = el("p", { class: "status", id: "status" });
  const sentences = pick("Sentence", [], { name: "sentence", value: 0, change: (value) => app.translate({ sentence: Number(value), prefix: [], step: null }) });
  const key = el("input", { type: "password", id: "key", placeholder: "Key of this server", "aria-label": "Key of this server", autocomplete: "off", hidden: true });
  const form = el("form", { class: "ask" }, key, text, el("div", { class: "row" }, direction, sentences, go), status);
  let sent = null; // from this box, and not answered yet
  text.value = app.state.text ?? "";

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (app.store.offline) return;
    if (key.value) app.store.key = key.value;
    if (!app.models.length) {
      if (text.value) app.set({ text: text.value });
      app.begin();
      return;
    }
    const { source, target } = app.models[Number(direction.value)] ?? {};
    sent = text.value;
    const untouched = sent === firstSentence(app.state.source); // another language has another first sentence
    app.translate({ text: untouched ? null : sent, source, target, sentence: 0, prefix: [], off: [], step: null });
  });
  direction.addEventListener("change", () => form.requestSubmit());
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  });
  let typed = false;
  text.addEventListener("input", () => {
    typed = true;
    fit(text);
  });

  app.onChange((changed) => {
    if (changed.has("text")) {
      const draft = typed && !app.meta && !app.plain; // begun before there was a first sentence
      if (app.state.text !== sent && !draft) text.value = app.state.text; // else somebody may be typing on already
      sent = null;
    }
    if (direction.options.length !== app.models.length) {
      replace(direction, ...app.models.map((model, index) => el("option", {
        value: index, text: `${called(model.source)} → ${called(model.target)}`,
      })));
    }
    const at = app.models.findIndex((model) => model.source === app.state.source && model.target === app.state.target);
    if (at >= 0 && !app.busy) direction.value = String(at);
    text.lang = app.state.source ?? "";
    const several = app.meta?.sentences ?? [];
    sentences.hidden = several.length < 2;
    sentences.show(app.state.sentence, several.map((_, index) => [index, `${index + 1} of ${several.length}`]));
    sentences.querySelector("select").disabled = app.store.offline;
    fit(text);
    key.hidden = !app.needsKey;
    go.disabled = app.store.offline;
    text.readOnly = app.store.offline;
    direction.disabled = app.store.offline;
    status.classList.toggle("error", Boolean(app.error));
    status.textContent = app.error || (app.busy ? "Translating…" : figures(app));
  });
  return form;
}

function figures(app) {
  if (!app.meta) return "";
  if (app.store.offline) return "Saved as one file: to translate something else, run dragoman serve.";
  const { score, confidence } = app.meta.translation;
  const known = confidence === null || confidence === undefined ? [] : [`confidence ${percent(confidence)}`];
  return [`score ${fixed(score, 2)}`, ...known].join(" · ");
}

function fit(text) {
  text.style.setProperty("height", "auto");
  text.style.setProperty("height", `${Math.min(text.scrollHeight + 2, 180)}px`);
}

// A text as chips, a chip a piece, with the spaces that stood between them.
function write(line, side, click, app, name) {
  const parts = [];
  const characters = Array.from(side.text);
  const slice = (from, to) => characters.slice(from, to).join("");
  let end = 0;
  let word = null;
  side.pieces.forEach((piece, index) => {
    const start = Math.max(piece.start ?? end, end);
    const own = piece.special ? "" : slice(start, piece.end).trimStart();
    const before = piece.special || end === 0 ? " " : slice(end, piece.end - Array.from(own).length);
    const chip = el("button", {
      type: "button", class: `chip${piece.special ? " special" : own ? "" : " blank"}`, data: { index }, tabindex: -1,
      title: `${piece.piece} (${piece.id})`, "aria-label": shown(piece),
      on: {
        click: () => click(index),
        pointerenter: () => app.hover({ side: name, pieces: [index] }),
        pointerleave: () => app.hover(null),
        focus: () => app.hover({ side: name, pieces: [index] }),
        blur: () => app.hover(null),
      },
    }, piece.special ? piece.piece : own || "·");
    if (before || !word || piece.special) {
      if (before) parts.push(" ");
      word = bdi("", { class: "joined" });
      parts.push(word);
    }
    word.append(chip);
    if (!piece.special) end = piece.end;
  });
  replace(line, ...parts);
}

function mark(source, target, app) {
  for (const chip of target.querySelectorAll(".chip")) {
    const index = Number(chip.dataset.index);
    chip.classList.toggle("future", index > app.step);
    chip.classList.toggle("current", app.state.step !== null && index === app.step);
    chip.setAttribute("aria-current", String(app.state.step !== null && index === app.step));
  }
  const asked = app.state.kind === "encoder_self" && ["microscope", "threads"].includes(app.state.view);
  const unasked = app.state.view === "microscope" ? 0 : null; // which always shows one
  for (const chip of source.querySelectorAll(".chip")) {
    chip.classList.toggle("current", asked && Number(chip.dataset.index) === (app.state.query ?? unasked));
  }
}

function hintFor(app) {
  if (app.state.step === null) return [FIRST];
  const { chosen, top } = app.meta.steps[app.step];
  const other = top.find((piece) => piece.id !== chosen.id);
  const word = (piece) => said(shown(piece), { lang: app.meta.request.target });
  return [
    `Piece ${app.step + 1} of ${app.lastStep + 1}: `, word(chosen), ` with probability ${percent(chosen.probability)}`,
    ...(other ? ["; next best ", word(other), ` ${percent(other.probability)}`] : []), ".",
  ];
}

// What was changed by hand, and the way back.
function changesOf(app) {
  const { prefix, off } = app.state;
  if (!prefix.length && !off.length) return [];
  const parts = [
    prefix.length && `first ${prefix.length} ${prefix.length === 1 ? "piece" : "pieces"} given`,
    off.length && `${off.length} ${off.length === 1 ? "head" : "heads"} off`,
  ].filter(Boolean);
  const undo = button("Back to the model’s own", () => app.translate({ prefix: [], off: [], step: null }), { name: "undo" });
  undo.disabled = app.store.offline;
  return [el("span", { text: `Changed: ${parts.join(", ")}.` }), undo];
}
