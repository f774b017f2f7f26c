// What matters: leave each word out, and see what the model would have lost; beside it, where attention looked.

import { attentionOf } from "../attention.js";
import { cividis, signed, token } from "../colour.js";
import { note, opening } from "../controls.js";
import { bdi, el, replace, said } from "../dom.js";
import { matrix, meanOf, rankCorrelation } from "../matrix.js";
import { percent, points, share } from "../numbers.js";
import { asking } from "./asking.js";
import { cellSize, heatmap, wordNow } from "./heatmap.js";

export function createMatters(root, app) {
  const body = el("div", { class: "pair" });
  const readout = el("p", { class: "formula", "aria-live": "polite" });
  const table = el("div", { class: "scroll" });
  const answer = el("div", {}, body, readout, el("h3", { text: "Where the two differ" }), table);
  root.append(opening("What matters",
    "Left: each source word is left out in turn, and the same translation is scored again: the change in each target word’s probability. Right: where attention looked.",
    "Leaving a word out also breaks the sentence: a change may come from the gap and not from the word’s meaning."), answer);
  let [maps, shown] = [[], null]; // the figures, and the translation that they are of

  const draw = asking(app, answer, async (meta) => {
    const asked = lookedFor(app);
    const looked = meta.heads.length ? attentionOf(app, asked) : null;
    const [importance, attention] = await Promise.all([app.store.ask("importance", meta), looked]);
    return () => {
      shown = meta;
      show(importance, attention && byWord(attention, meta), titleOf(asked));
    };
  }, (problem) => { maps = []; replace(body, problem); replace(table); });

  function show({ words, targets, before, change }, weights, title) {
    if (!words.length || !targets.length) {
      maps = [];
      replace(body, note("There are only special pieces here, and no words to leave out."));
      replace(readout);
      return replace(table);
    }
    const changes = matrix(words.length, targets.length, Float32Array.from(change.flat()));
    const most = Math.max(0.01, ...change.flat().map(Math.abs));
    const tell = (row, col) => {
      for (const map of maps) map.mark(row, col);
      const i = row * targets.length + col;
      replace(readout, "Without ", said(words[row]), ", ", said(targets[col]), ` goes from ${percent(before[col])} to ${percent(Math.max(before[col] + changes.data[i], 0))}: ${points(changes.data[i])} points.`, weights ? ` Attention there: ${share(weights.data[i])}.` : "");
    };
    const wide = body.clientWidth > 720;
    const size = cellSize(targets.length, wide ? body.clientWidth / 2 - 12 : body.clientWidth);
    const middle = token("--panel");
    const shared = { rows: words, cols: targets, tell, readout, size };
    maps = [
      heatmap({ ...shared, title: "Change when left out (blue: less likely, orange: more)", matrix: changes, top: most, colour: (value) => signed(value, middle) }),
    ];
    if (weights) maps.push(heatmap({ ...shared, title, matrix: weights, top: Math.max(0.01, ...weights.data), colour: cividis }));
    replace(body, ...maps);
    readout.textContent = "Point at a cell: a row is the source word left out, a column the target word it was asked about.";
    replace(table, weights ? differences(words, targets, changes, weights) : note("This model has no attention to compare with."));
    mark();
  }

  // The word that is being written has its column, and its line in the table.
  function mark() {
    if (shown !== app.meta) return;
    const now = wordNow(app);
    for (const map of maps) map.now({ row: -1, col: now });
    table.querySelectorAll("tbody tr").forEach((line, index) => {
      line.classList.toggle("now", index === now);
      line.setAttribute("aria-current", String(index === now));
    });
  }

  return {
    update(changed) {
      if (["meta", "kind", "layer", "heads", "mode", "measure", "theme"].some((name) => changed.has(name))) draw();
      else if (changed.has("step")) mark();
    },
  };
}

// The cross-attention that was looked at last, in words.
function lookedFor({ state, meta }) {
  const cross = state.kind === "cross";
  const mode = cross ? state.mode : "mean";
  return { ...state, kind: "cross", unit: "words", special: false, mode, layer: cross ? state.layer : meta.alignment_layer ?? 0 };
}

// -> source words by target words; a word may have no piece that was looked at or from, and then its weights are 0.
function byWord({ rows, cols, layers }, { source, target }) {
  const looked = meanOf(layers.map((layer) => layer.matrix));
  const weights = matrix(source.words.length, target.words.length);
  rows.forEach((row, r) => cols.forEach((col, c) => {
    weights.data[col.word * target.words.length + row.word] = looked.data[r * cols.length + c];
  }));
  return weights;
}

function titleOf({ mode, layer, heads }) {
  if (mode === "rollout") return "Attention, all layers (rollout)";
  return mode === "mean" ? `Attention, layer ${layer + 1}, mean of heads` : `Attention, layer ${layer + 1}, head ${heads.map((head) => head + 1).join(", ")}`;
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
