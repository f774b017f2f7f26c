// The next piece: what the model thought might come, layer by layer, and the way to have it otherwise.

import { button, opening } from "../controls.js";
import { shown, slice } from "../axes.js";
import { bdi, el, inLanguage, replace } from "../dom.js";
import { percent } from "../numbers.js";

export function createNext(root, app) {
  const context = el("p", { class: "sofar" });
  const bars = el("ol", { class: "bars", "aria-label": "Likeliest next pieces" });
  const table = el("div", { class: "scroll" });
  const fine = el("p", { class: "fine" });
  const lens = el("section", {}, el("h3", { text: "The same question, asked after each layer" }),
    el("p", { class: "shows" }, "Each row reads the state after a decoder layer as if it were the last. ",
      el("span", { class: "caution", text: "Early layers were never trained to be read this way." })), table);
  root.append(opening("Next piece",
    "The pieces that the model found likeliest at this step. Click one to force it, and see how the translation goes on from there.",
    "A probability is the model’s own belief, not the chance that the translation is right."),
  context, bars, fine, lens);

  function draw() {
    const { meta, step } = app;
    const { chosen, top, lens: layers } = meta.steps[step];
    const given = wasGiven(meta, step);
    replace(inLanguage(context, meta.model.target, meta.target.text), ...soFar(meta, step));
    const listed = top.some((piece) => piece.id === chosen.id) ? top : [...top, chosen];
    const most = Math.max(...listed.map((piece) => piece.probability));
    const focused = bars.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    replace(bars, ...listed.map((piece) => bar(piece, { name: named(piece, listed), taken: piece.id === chosen.id, given, most }, app)));
    if (focused !== null) (bars.querySelector(`[data-id="${focused}"]`) ?? bars.querySelector(".taken button")).focus({ preventScroll: true });
    const rest = 1 - listed.reduce((sum, piece) => sum + piece.probability, 0);
    fine.textContent = `${percent(Math.max(rest, 0))} is spread over all other pieces.${why(chosen, given)}`;
    lens.hidden = !layers?.length; // a recurrent decoder is not read layer by layer
    replace(table, lensTable(layers ?? [], chosen));
  }

  return {
    update(changed) {
      if (changed.has("meta") || changed.has("step")) draw();
    },
  };
}

// Whether a piece was forced, or the whole translation given: no search took it then.
function wasGiven({ request, beam }, step) {
  return step < (request.prefix?.length ?? 0) || !beam;
}

function why({ rank }, given) {
  if (given) return ` This piece was given; it is the model’s choice ${rank}.`;
  return rank > 1 ? ` The search took choice ${rank}: it looks further ahead than one piece.` : "";
}

// The text before this step, in the room that the whole of it takes, so that nothing below moves as it grows.
function soFar(meta, step) {
  const before = meta.target.pieces.slice(0, step).filter((piece) => !piece.special);
  const end = before.length ? before[before.length - 1].end : 0;
  return [
    el("span", {}, bdi(slice(meta.target.text, 0, end)), el("span", { class: "cursor", text: "…" })),
    el("span", { class: "room", "aria-hidden": "true", text: `${meta.target.text}…` }),
  ];
}

// Two pieces may read alike and differ in the space before them: then each is shown as the vocabulary has it.
function named(piece, list) {
  const alike = list.filter((other) => shown(other) === shown(piece)).length > 1;
  return alike ? piece.piece : shown(piece);
}

function bar(piece, { name, taken, given, most }, app) {
  const track = el("span", { class: "track" }, el("span", { class: "fill", css: { width: `${(100 * piece.probability) / most}%` } }));
  const force = button("", () => {
    if (taken) return;
    const before = app.meta.target.pieces.slice(0, app.step).map((one) => one.id);
    app.translate({ prefix: [...before, piece.id], step: app.step });
  }, {
    kind: "bar", title: taken ? `This one was ${given ? "given" : "taken"}` : "Go on from here with this piece",
    "aria-disabled": taken ? "true" : null, // and not disabled, or the one that was just forced would lose the focus
  });
  force.append(bdi(name, { class: "piece" }), track, el("span", { class: "figure", text: percent(piece.probability) }));
  force.disabled = app.store.offline;
  force.dataset.id = String(piece.id);
  return el("li", { class: taken ? "taken" : "" }, force);
}

function lensTable(layers, chosen) {
  const rows = layers.map((guesses, layer) => el("tr", {},
    el("th", { scope: "row", text: layer + 1 === layers.length ? `${layer + 1} (last)` : String(layer + 1) }),
    ...guesses.map((guess) => el("td", { class: guess.id === chosen.id ? "taken" : "" },
      bdi(named(guess, guesses), { class: "piece" }), " ", el("span", { class: "figure", text: percent(guess.probability) })))));
  const head = el("tr", {}, el("th", { scope: "col", text: "after layer" }), ...["first", "second", "third"].map((text) => el("th", { scope: "col", text })));
  return el("table", { class: "lens" }, el("thead", {}, head), el("tbody", {}, ...rows.reverse()));
}
