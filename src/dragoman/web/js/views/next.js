// The next piece: what the model thought might come, layer by layer, and the way to have it otherwise.

import { button, opening } from "../controls.js";
import { shown, slice } from "../axes.js";
import { bdi, el, replace } from "../dom.js";
import { percent } from "../numbers.js";

export function createNext(root, app) {
  const context = el("p", { class: "sofar" });
  const bars = el("ol", { class: "bars", "aria-label": "Likeliest next pieces" });
  const lens = el("div", { class: "scroll" });
  const fine = el("p", { class: "fine" });
  root.append(opening("Next piece",
    "The pieces that the model found likeliest at this step. Click one to force it, and see how the translation goes on from there.",
    "A probability is the model’s own belief, not the chance that the translation is right."),
  context, bars, fine, el("h3", { text: "The same question, asked after each layer" }),
  el("p", { class: "shows" }, "Each row reads the state after a decoder layer as if it were the last. ",
    el("span", { class: "caution", text: "Early layers were never trained to be read this way." })), lens);

  return {
    update() {
      const { meta, step } = app;
      const { chosen, top, lens: layers } = meta.steps[step];
      replace(context, soFar(meta, step), el("span", { class: "cursor", text: "…" }));
      const listed = top.some((piece) => piece.id === chosen.id) ? top : [...top, chosen];
      const most = Math.max(...listed.map((piece) => piece.probability));
      replace(bars, ...listed.map((piece) => bar(piece, named(piece, listed), chosen, most, app)));
      const rest = 1 - listed.reduce((sum, piece) => sum + piece.probability, 0);
      fine.textContent = `${percent(Math.max(rest, 0))} is spread over all other pieces.${chosen.rank > 1 ? ` The search took choice ${chosen.rank}: it looks further ahead than one piece.` : ""}`;
      replace(lens, lensTable(layers ?? [], chosen));
    },
  };
}

function soFar(meta, step) {
  const before = meta.target.pieces.slice(0, step).filter((piece) => !piece.special);
  const end = before.length ? before[before.length - 1].end : 0;
  return bdi(slice(meta.target.text, 0, end));
}

// Two pieces may read alike and differ in the space before them: then each is shown as the vocabulary has it.
function named(piece, list) {
  const alike = list.filter((other) => shown(other) === shown(piece)).length > 1;
  return alike ? piece.piece : shown(piece);
}

function bar(piece, name, chosen, most, app) {
  const forced = piece.id === chosen.id;
  const track = el("span", { class: "track" }, el("span", { class: "fill", css: { width: `${(100 * piece.probability) / most}%` } }));
  const force = button("", () => {
    const before = app.meta.target.pieces.slice(0, app.step).map((one) => one.id);
    app.translate({ prefix: [...before, piece.id], step: app.step });
  }, { kind: "bar", title: forced ? "This one was taken" : "Go on from here with this piece" });
  force.append(bdi(name, { class: "piece" }), track, el("span", { class: "figure", text: percent(piece.probability) }));
  force.disabled = forced || app.store.offline;
  force.dataset.id = String(piece.id);
  return el("li", { class: forced ? "taken" : "" }, force);
}

function lensTable(layers, chosen) {
  const rows = layers.map((guesses, layer) => el("tr", {},
    el("th", { scope: "row", text: layer + 1 === layers.length ? `${layer + 1} (last)` : String(layer + 1) }),
    ...guesses.map((guess) => el("td", { class: guess.id === chosen.id ? "taken" : "" },
      bdi(named(guess, guesses), { class: "piece" }), " ", el("span", { class: "figure", text: percent(guess.probability) })))));
  const head = el("tr", {}, el("th", { scope: "col", text: "after layer" }), ...["first", "second", "third"].map((text) => el("th", { scope: "col", text })));
  return el("table", { class: "lens" }, el("thead", {}, head), el("tbody", {}, ...rows.reverse()));
}
