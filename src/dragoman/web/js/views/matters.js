// What matters: leave each word out, and see what the model would have lost; beside it, where attention looked.

import { attentionOf } from "../attention.js";
import { cividis, signed, token } from "../colour.js";
import { opening } from "../controls.js";
import { bdi, el, replace } from "../dom.js";
import { latest } from "../latest.js";
import { matrix, meanOf, rankCorrelation } from "../matrix.js";
import { percent, points, share } from "../numbers.js";
import { cellSize, heatmap } from "./heatmap.js";

export function createMatters(root, app) {
  const body = el("div", { class: "pair" });
  const readout = el("p", { class: "formula" });
  const table = el("div", { class: "scroll" });
  root.append(opening("What matters",
    "Left: each source word is left out in turn, and the same translation is scored again: the change in each target word’s probability. Right: where attention looked.",
    "Leaving a word out also breaks the sentence: a change may come from the gap and not from the word’s meaning."),
  body, readout, el("h3", { text: "Where the two differ" }), table);

  const draw = latest(async () => {
    const asked = { ...app.state, kind: "cross", unit: "words", special: false, mode: app.state.kind === "cross" ? app.state.mode : "mean",
      layer: app.state.kind === "cross" ? app.state.layer : app.meta.alignment_layer ?? 0 };
    const [importance, attention] = await Promise.all([
      app.store.ask("importance", app.meta), attentionOf(app, asked),
    ]);
    return () => show(importance, attention, asked);
  }, (problem) => replace(body, problem));

  function show({ words, targets, before, change }, attention, asked) {
    const looked = meanOf(attention.layers.map((layer) => layer.matrix));
    const changes = matrix(words.length, targets.length, Float32Array.from(change.flat()));
    const weights = matrix(words.length, targets.length);
    for (let s = 0; s < words.length; s += 1) for (let t = 0; t < targets.length; t += 1) weights.data[s * targets.length + t] = looked.data[t * words.length + s];
    const most = Math.max(0.01, ...change.flat().map(Math.abs));
    const tell = (row, col) => {
      for (const map of maps) map.mark(row, col);
      const i = row * targets.length + col;
      replace(readout, "Without ", said(words[row]), ", ", said(targets[col]), ` goes from ${percent(before[col])} to ${percent(Math.max(before[col] + changes.data[i], 0))}: ${points(changes.data[i])} points. Attention there: ${share(weights.data[i])}.`);
    };
    const wide = body.clientWidth > 720;
    const size = cellSize(targets.length, wide ? body.clientWidth / 2 - 12 : body.clientWidth);
    const middle = token("--panel");
    const maps = [
      heatmap({ title: "Change when left out (blue: less likely, orange: more)", rows: words, cols: targets, matrix: changes, top: most, tell, size, colour: (value) => signed(value, middle) }),
      heatmap({ title: titleOf(asked), rows: words, cols: targets, matrix: weights, top: Math.max(0.01, ...weights.data), tell, size, colour: cividis }),
    ];
    replace(body, ...maps);
    readout.textContent = "Point at a cell: a row is the source word left out, a column the target word it was asked about.";
    replace(table, differences(words, targets, changes, weights));
  }

  return {
    update(changed) {
      if (["meta", "kind", "layer", "heads", "mode", "measure", "theme"].some((name) => changed.has(name))) draw();
    },
  };
}

function titleOf({ mode, layer, heads }) {
  if (mode === "rollout") return "Attention, all layers (rollout)";
  return mode === "mean" ? `Attention, layer ${layer + 1}, mean of heads` : `Attention, layer ${layer + 1}, head ${heads.map((head) => head + 1).join(", ")}`;
}

function said(text) {
  return el("q", {}, bdi(text));
}

function differences(words, targets, changes, weights) {
  const rows = targets.map((target, t) => {
    const column = ({ data }) => words.map((_, s) => data[s * targets.length + t]);
    const [lost, looked] = [column(changes).map((value) => -value), column(weights)];
    const needed = lost.indexOf(Math.max(...lost));
    const seen = looked.indexOf(Math.max(...looked));
    return el("tr", { class: needed === seen ? "" : "differs" },
      el("th", { scope: "row" }, bdi(target)),
      el("td", {}, bdi(words[seen])), el("td", { class: "num", text: share(looked[seen]) }),
      el("td", {}, bdi(words[needed])), el("td", { class: "num", text: points(-lost[needed]) }),
      el("td", { class: "num", text: rankCorrelation(lost, looked).toFixed(2).replace("-", "−") }));
  });
  const heads = ["target word", "attention looked most at", "weight", "hurts most to leave out", "points", "agreement of order"];
  return el("table", { class: "plain" }, el("thead", {}, el("tr", {}, ...heads.map((text) => el("th", { scope: "col", text })))), el("tbody", {}, ...rows));
}
