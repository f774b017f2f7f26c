// The arithmetic microscope: one query of one head, from x to what the next layer reads, with the real numbers.

import { axes, layersOf, place } from "../axes.js";
import { button, opening, pick } from "../controls.js";
import { copyFrom } from "../clipboard.js";
import { el, replace } from "../dom.js";
import { latest } from "../latest.js";
import { dot, vectorOf } from "../matrix.js";
import { kindChoice } from "./kinds.js";
import { asPytorch } from "./pytorch.js";
import { after, before, keyTable } from "./working.js";

const PARTS = ["input", "query", "key", "value", "scores", "weights", "mixed", "output", "contribution"];
const AROUND = ["_residual.input", "_residual.sum", "_residual.output"];
// What was learned, and is large: it comes after the rest is drawn.
const MATRICES = [".w_q", ".w_k", ".w_v", ".w_o"];
const VECTORS = [".b_q", ".b_k", ".b_v", ".b_o", "_residual.norm.weight", "_residual.norm.bias"];
const REST = "Point at a number, or walk to it with the arrow keys, to see it worked out.";

export function createMicroscope(root, app) {
  const controls = createBar(app);
  const formula = el("p", { class: "formula worked", "aria-live": "polite", text: REST });
  const body = el("div", { class: "working" });
  const code = el("code", {});
  const copyButton = button("Copy as PyTorch", async () => copyFrom(copyButton, await snippet()), { name: "copy-pytorch" });
  const details = el("details", { class: "code" }, el("summary", { text: "The snippet" }), el("pre", {}, code));
  root.append(opening("Arithmetic",
    "One piece asks, every piece it may see answers: the whole of softmax(QKᵀ/√d_k)V for one query of one head, number by number.",
    "That a number can be worked out does not say what it means."),
  controls.node, formula, body,
  el("div", { class: "row" }, copyButton), details);

  let work = null;
  let learning = null; // a promise, kept when what it waits for is there
  let telling = () => REST;
  // What has not changed is not said again.
  const tell = () => {
    if (formula.textContent !== telling()) formula.textContent = telling();
  };
  const say = (text) => {
    telling = text;
    tell();
  };
  const snippet = async () => {
    await learning;
    return asPytorch(work, `${work.name}, head ${work.head + 1}: ${work.who.text}`);
  };
  const unfold = async () => {
    const shown = work;
    const text = details.open && shown ? await snippet() : "";
    if (shown === work) code.textContent = text;
  };
  details.addEventListener("toggle", unfold);

  // Numbers that are told already are told again, worked out, when the matrices arrive.
  async function learn(mine) {
    const names = [...MATRICES, ...VECTORS].map((part) => mine.name + part).filter((one) => app.has(one));
    const tensors = await app.tensors(...names);
    mine.learned = learnedFrom(mine.head, (part) => tensors.get(mine.name + part));
    if (mine !== work) return;
    body.dataset.learned = String(Boolean(mine.learned));
    tell();
  }

  const draw = latest(async () => {
    const asked = askedFor(app);
    const { name, embedded } = asked;
    const names = [...PARTS.map((part) => `${name}.${part}`), ...AROUND.map((part) => name + part), "encoder.output", `${embedded}.pieces`, `${embedded}.position`];
    const tensors = await app.tensors(...names.filter((one) => app.has(one)));
    const found = workOut(asked, (part) => tensors.get(part.startsWith("_") ? name + part : `${name}.${part}`), (other) => tensors.get(other));
    return () => {
      work = found;
      replace(body, ...before(work, say), keyTable(work, say), ...after(work, say));
      body.dataset.place = `${name}.${asked.head}.${asked.row}`;
      delete body.dataset.learned;
      say(() => REST);
      learning = learn(work).catch(() => {}); // without them there is less to tell, and the snippet is shorter
      unfold();
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
  const { norm, norm_order: order, heads: count } = app.meta.model;
  const row = kind === "encoder_self" ? Math.min(query ?? 0, rows.length - 1) : app.step;
  const origin = kind === "cross" ? "from the self-attention of this layer" : `from the feed-forward network of layer ${layer}`;
  const embedded = layer === 0 && kind !== "cross" ? (kind === "encoder_self" ? "source" : "target") : null;
  return {
    kind, layer, head: heads[0], heads: count, row, who: rows[row], keys: cols.map((col) => col.text), causal: kind === "decoder_self",
    name: place(kind, layer), norm, pre: order === "pre", origin, embedded,
  };
}

const rowsOf = (tensor) => Array.from({ length: tensor.shape[0] }, (_, index) => vectorOf(tensor, index));

// Everything that is shown of one query, from the trace's tensors.
function workOut(asked, tensor, other) {
  const { head, row, keys, causal, embedded } = asked;
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
  const memory = asked.kind === "cross" ? other("encoder.output") : tensor("input");
  const part = (name) => vectorOf(other(`${embedded}.${name}`), row);
  const shares = tensor("contribution");
  return {
    ...asked, query: q, key: k, value: v, width, scaled, mask, most, sum, learned: null,
    raw: k.map((one) => dot(q, one)),
    weights: Array.from(vectorOf(tensor("weights"), head, row)),
    mixed: vectorOf(tensor("mixed"), head, row),
    shares: shares ? Array.from({ length: asked.heads }, (_, index) => vectorOf(shares, index, row)) : null,
    input: at("input"), output: at("output"), summed: at("_residual.sum"), onward: at("_residual.output"),
    before: at("_residual.input") ?? (asked.pre ? null : at("input")),
    memory: memory ? rowsOf(memory) : null,
    states: tensor("_residual.input") ? rowsOf(tensor("_residual.input")) : null,
    embedding: embedded && other(`${embedded}.pieces`) && other(`${embedded}.position`) ? { piece: part("pieces"), position: part("position") } : null,
  };
}

// One head's matrices, each a list of what makes one number of its result; null where a page does not have them.
function learnedFrom(head, part) {
  if (!MATRICES.every((name) => part(name))) return null;
  const columns = (tensor) => Array.from({ length: tensor.shape[1] }, (_, index) => vectorOf(tensor, head, index));
  const found = Object.fromEntries(MATRICES.map((name) => [name.slice(1), columns(part(name))]));
  for (const name of [".b_q", ".b_k", ".b_v"]) if (part(name)) found[name.slice(1)] = vectorOf(part(name), head);
  return { ...found, b_o: part(".b_o")?.data, gain: part("_residual.norm.weight")?.data, shift: part("_residual.norm.bias")?.data };
}

function createBar(app) {
  const kind = kindChoice(app, "microscope-kind");
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
      kind.show();
      layer.show(asked.layer, numbered(layersOf(app.meta, asked.kind)));
      head.show(asked.head, numbered(app.meta.model.heads));
      query.show(asked.row, axes(app.meta, asked.kind, "pieces").rows.map((row, index) => [index, `${index + 1}  ${row.text}`]));
    },
  };
}

