// The arithmetic microscope: one query of one head, from x to what the next layer reads, with the real numbers.

import { axes, KINDS, layersOf, place } from "../axes.js";
import { button, choice, opening, pick } from "../controls.js";
import { copyFrom } from "../clipboard.js";
import { el, replace } from "../dom.js";
import { latest } from "../latest.js";
import { dot, vectorOf } from "../matrix.js";
import { after, before, keyTable } from "./working.js";
import { asPytorch } from "./pytorch.js";

const PARTS = ["input", "query", "key", "value", "scores", "weights", "mixed", "output", "contribution"];
const REST = "Point at a number, or walk to it with the arrow keys, to see it worked out.";

export function createMicroscope(root, app) {
  const controls = createBar(app);
  const formula = el("p", { class: "formula", "aria-live": "off", text: REST });
  const body = el("div", { class: "working" });
  const code = el("code", {});
  const copyButton = button("Copy as PyTorch", () => copyFrom(copyButton, code.textContent), { name: "copy-pytorch" });
  root.append(opening("Arithmetic",
    "One piece asks, every piece it may see answers: the whole of softmax(QKᵀ/√d_k)V for one query of one head, number by number.",
    "That a number can be worked out does not say what it means."),
  controls.node, formula, body,
  el("div", { class: "row" }, copyButton), el("details", { class: "code" }, el("summary", { text: "The snippet" }), el("pre", {}, code)));

  const say = (text) => { formula.textContent = text ?? REST; };
  const draw = latest(async () => {
    const asked = askedFor(app);
    const name = place(asked.kind, asked.layer);
    const names = [...PARTS.map((part) => `${name}.${part}`), `${name}_residual.sum`, `${name}_residual.output`];
    const tensors = await app.tensors(...names.filter((one) => app.has(one)));
    const work = workOut(asked, (part) => tensors.get(part.startsWith("_") ? name + part : `${name}.${part}`));
    return () => {
      replace(body, ...before(work, app, say), keyTable(work, say), ...after(work, app, say));
      code.textContent = asPytorch({ ...work, title: `${name}, head ${asked.head}: ${work.who.text}` });
      body.dataset.place = `${name}.${asked.head}.${asked.row}`;
      say();
    };
  }, (problem) => replace(body, problem));

  return {
    update(changed) {
      controls.show();
      if (["meta", "kind", "layer", "heads", "step", "query", "theme"].some((one) => changed.has(one))) draw();
    },
  };
}

function askedFor(app) {
  const { kind, layer, heads, query } = app.state;
  const { rows, cols } = axes(app.meta, kind, "pieces");
  const row = kind === "encoder_self" ? Math.min(query, rows.length - 1) : app.step;
  return { kind, layer, head: heads[0], row, who: rows[row], keys: cols.map((col) => col.text), causal: kind === "decoder_self" };
}

// Everything that is shown of one query, from the trace's tensors.
function workOut(asked, tensor) {
  const { head, row, keys, causal } = asked;
  const [query, key, value] = [tensor("query"), tensor("key"), tensor("value")];
  const q = vectorOf(query, head, row);
  const width = q.length;
  const k = keys.map((_, index) => vectorOf(key, head, index));
  const v = keys.map((_, index) => vectorOf(value, head, index));
  const scaled = Array.from(vectorOf(tensor("scores"), head, row));
  const mask = keys.map((_, index) => !causal || index <= row);
  const most = Math.max(...scaled.filter((_, index) => mask[index]));
  const sum = scaled.reduce((total, score, index) => total + (mask[index] ? Math.exp(score - most) : 0), 0);
  const at = (part) => (tensor(part) ? vectorOf(tensor(part), row) : null);
  return {
    ...asked, query: q, key: k, value: v, width, scaled, mask, most, sum,
    raw: k.map((one) => dot(q, one)),
    weights: Array.from(vectorOf(tensor("weights"), head, row)),
    mixed: vectorOf(tensor("mixed"), head, row),
    contribution: tensor("contribution") ? vectorOf(tensor("contribution"), head, row) : null,
    input: at("input"), output: at("output"), summed: at("_residual.sum"), onward: at("_residual.output"),
  };
}

function createBar(app) {
  const kind = choice("Attention", Object.entries(KINDS), { name: "microscope-kind", value: app.state.kind, change: (value) => app.set({
    kind: value, layer: Math.min(app.state.layer, layersOf(app.meta, value) - 1),
  }) });
  const layer = pick("Layer", [], { name: "microscope-layer", value: 0, change: (value) => app.set({ layer: Number(value) }) });
  const head = pick("Head", [], { name: "microscope-head", value: 0, change: (value) => app.set({ heads: [Number(value)] }) });
  const query = pick("Query", [], { name: "microscope-query", value: 0, change: (value) => {
    const row = Number(value);
    if (app.state.kind === "encoder_self") app.set({ query: row });
    else app.set({ step: row >= app.lastStep ? null : row });
  } });
  const numbered = (count) => Array.from({ length: count }, (_, index) => [index, String(index + 1)]);
  return {
    node: el("div", { class: "controls" }, kind, layer, head, query),
    show() {
      const asked = askedFor(app);
      kind.show(asked.kind);
      layer.show(asked.layer, numbered(layersOf(app.meta, asked.kind)));
      head.show(asked.head, numbered(app.meta.model.heads));
      query.show(asked.row, axes(app.meta, asked.kind, "pieces").rows.map((row, index) => [index, `${index + 1}  ${row.text}`]));
    },
  };
}

