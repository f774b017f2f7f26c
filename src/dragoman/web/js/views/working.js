// The microscope's figures: strips of numbers, and the table with a row for each key.

import { cellAt, drawStrip, largest } from "../canvas.js";
import { bdi, el } from "../dom.js";
import { fixed, share } from "../numbers.js";
import { formulas } from "./formulas.js";

// A vector as a strip that tells the number under the pointer; arrow keys walk along it.
export function strip(vector, { label, tell, top, kind = "strip" }) {
  const canvas = drawStrip(el("canvas", { class: kind, role: "img", tabindex: tell ? 0 : undefined, "aria-label": label }), vector, top);
  if (!tell) return canvas;
  let at = 0;
  const show = (index) => {
    at = Math.min(Math.max(index, 0), vector.length - 1);
    tell(at);
    canvas.dataset.at = String(at);
  };
  canvas.addEventListener("pointermove", (event) => show(cellAt(canvas, event, { rows: 1, cols: vector.length }).col));
  canvas.addEventListener("focus", () => show(at));
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!move) return;
    event.preventDefault();
    show(at + move);
  });
  return canvas;
}

function line(name, meaning, vector, tell) {
  return el("div", { class: "vector" },
    el("span", { class: "name", text: name }),
    strip(vector, { label: `${name}: ${vector.length} numbers`, tell }),
    el("span", { class: "size", text: `${vector.length}` }),
    el("span", { class: "meaning" }, meaning));
}

// x and q, and who asks.
export function before({ who, input, query, kind }, app, say) {
  const component = (name, vector, of) => (index) => say(formulas.component({ name, index, value: vector[index], of }));
  const seen = app.meta.model.norm_order === "pre" ? "the state that comes in, normalised" : "the state that comes in";
  return [
    el("p", { class: "asker" }, el("q", {}, bdi(who.text)), kind === "cross" ? " is about to be written, and asks the source:" : kind === "decoder_self" ? " was read last, and asks what was written so far:" : " asks the whole source:"),
    el("div", { class: "vectors" },
      input && line("x", seen, input, component("x", input, seen)),
      line("q", "x W_Q: what is looked for", query, component("q", query, "x times a column of W_Q"))),
  ];
}

const COLUMNS = ["key", "k", "q · k", "/ √d_k", "mask", "softmax", "", "v"];

export function keyTable(work, say) {
  const [topKey, topValue] = [work.key, work.value].map((vectors) => Math.max(...vectors.map(largest)));
  const rows = work.keys.map((text, i) => {
    const known = { query: work.query, key: work.key[i], raw: work.raw[i], width: work.width, scaled: work.scaled[i], open: work.mask[i], most: work.most, sum: work.sum, weight: work.weights[i] };
    const cell = (name, value) => el("td", {
      class: "num", tabindex: -1, data: { formula: name, key: i }, text: value,
      on: { pointerenter: () => say(formulas[name](known)), focus: () => say(formulas[name](known)) },
    });
    return el("tr", { class: work.mask[i] ? "" : "masked" },
      el("th", { scope: "row" }, bdi(text)),
      el("td", {}, strip(work.key[i], { label: "k", top: topKey, kind: "strip small" })),
      cell("product", fixed(work.raw[i], 2)), cell("scaled", fixed(work.scaled[i], 3)),
      cell("mask", work.mask[i] ? "" : "−∞"), cell("softmax", share(work.weights[i])),
      el("td", { class: "gauge" }, el("span", { css: { width: `${(100 * work.weights[i]).toFixed(2)}%` } })),
      el("td", {}, strip(work.value[i], { label: "v", top: topValue, kind: "strip small" })));
  });
  const table = el("table", { class: "keys" },
    el("thead", {}, el("tr", {}, ...COLUMNS.map((text) => el("th", { scope: "col", text })))), el("tbody", {}, ...rows));
  walk(table);
  return el("div", { class: "scroll" }, table);
}

// Arrow keys from number to number, one stop for Tab.
function walk(table) {
  const first = table.querySelector(".num");
  if (first) first.tabIndex = 0;
  table.addEventListener("keydown", (event) => {
    const cell = event.target.closest(".num");
    if (!cell) return;
    const line = [...cell.parentNode.querySelectorAll(".num")];
    const at = line.indexOf(cell);
    const other = { ArrowUp: cell.parentNode.previousSibling, ArrowDown: cell.parentNode.nextSibling }[event.key];
    const to = other ? other.querySelectorAll(".num")[at] : { ArrowLeft: line[at - 1], ArrowRight: line[at + 1] }[event.key];
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    if (!to) return;
    cell.tabIndex = -1;
    to.tabIndex = 0;
    to.focus();
  });
}

// z, W_O, the residual and the norm.
export function after(work, app, say) {
  const { mixed, contribution, output, summed, onward, weights, value, head } = work;
  const component = (name, vector, of) => (index) => say(formulas.component({ name, index, value: vector[index], of }));
  const lines = [line("z", "Σ softmax · v: the head’s answer", mixed, (index) => say(formulas.mixed({ index, weights, values: value, result: mixed[index] })))];
  if (contribution) lines.push(line("z W_O", `what head ${head + 1} adds to the output`, contribution, component("z W_O", contribution, "this head’s share")));
  if (output) lines.push(line("output", `all ${app.meta.model.heads} heads joined, times W_O`, output, component("output", output, "Concat(heads) W_O")));
  if (summed && output) {
    lines.push(line("x + output", "the residual: what was there is kept", summed, (index) => say(formulas.residual({
      index, before: summed[index] - output[index], added: output[index], result: summed[index],
    }))));
  }
  if (onward && app.meta.model.norm_order === "post") lines.push(line("norm", "normalised, on to the next sub-layer", onward, normTell(summed, onward, app, say)));
  return [el("div", { class: "vectors" }, ...lines)];
}

function normTell(summed, onward, app, say) {
  const mean = summed.reduce((total, one) => total + one, 0) / summed.length;
  const variance = summed.reduce((total, one) => total + (one - mean) ** 2, 0) / summed.length;
  const square = summed.reduce((total, one) => total + one ** 2, 0) / summed.length;
  const kind = app.meta.model.norm;
  const deviation = Math.sqrt((kind === "rms" ? square : variance) + 1e-5);
  return (index) => say(formulas.norm({ index, value: summed[index], mean, deviation, result: onward[index], kind }));
}
