// The microscope's figures: strips of numbers, and the table with a row for each key.

import { cellAt, drawStrip, largest } from "../canvas.js";
import { bdi, el, said } from "../dom.js";
import { fixed, share } from "../numbers.js";
import { formulas } from "./formulas.js";

// A vector as a strip that tells the number under the pointer; arrow keys walk along it, and off its ends.
export function strip(vector, { label, tell, top, kind = "strip", tabindex = 0, data = {} }) {
  const canvas = drawStrip(el("canvas", { class: kind, role: "application", "aria-roledescription": "strip of numbers", tabindex, "aria-label": label, data }), vector, top);
  let at = 0;
  const show = (index) => {
    at = index;
    tell(at);
    canvas.dataset.at = String(at);
    canvas.setAttribute("aria-label", `${label}; number ${at} is ${fixed(vector[at], 4)}`);
  };
  canvas.addEventListener("pointermove", (event) => show(cellAt(canvas, event, { rows: 1, cols: vector.length }).col));
  canvas.addEventListener("focus", () => show(at));
  canvas.addEventListener("keydown", (event) => {
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: vector.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (to < 0 || to >= vector.length) return;
    event.stopPropagation();
    show(to);
  });
  return canvas;
}

function line(vector, { name, meaning, tell }) {
  return el("div", { class: "vector" },
    el("span", { class: "name", text: name }),
    strip(vector, { label: `${name}: ${vector.length} numbers`, tell, data: { vector: name } }),
    el("span", { class: "size", text: `${vector.length}` }),
    el("span", { class: "meaning" }, meaning));
}

const ASKS = { cross: " is about to be written, and asks the source:", decoder_self: " was read last, and asks what was written so far:", encoder_self: " asks the whole source:" };

// x and q, and who asks.
export function before(work, say) {
  const { who, input, query, kind, pre } = work;
  const lines = [];
  if (pre && work.before) lines.push(line(work.before, { name: "h", meaning: "the state that comes in", tell: (index) => say(() => arrived("h", work, index)) }));
  if (input) {
    lines.push(line(input, pre
      ? { name: "x", meaning: "norm(h): the state, normalised", tell: tellNorm({ name: "x", from: "h", vector: work.before ?? input, result: input }, work, say) }
      : { name: "x", meaning: "the state that comes in", tell: (index) => say(() => arrived("x", work, index)) }));
  }
  lines.push(line(query, { name: "q", meaning: "x W_Q: what is looked for", tell: (index) => say(() => projected("q", { index, vector: input, result: query[index] }, work)) }));
  return [el("p", { class: "asker" }, said(who.text), ASKS[kind]), el("div", { class: "vectors" }, ...lines)];
}

// Where a number of the state comes from.
function arrived(name, { embedding, origin, before: state }, index) {
  if (embedding) return formulas.embedded({ name, index, piece: embedding.piece[index], position: embedding.position[index], result: state[index] });
  return formulas.component({ name, index, value: state[index], of: origin });
}

// One number of q, k, v or z W_O, with the matrix if it is here.
function projected(letter, { index, vector, result, name = letter, from = "x", of }, { learned }) {
  const matrix = `W_${letter.toUpperCase()}`;
  if (!learned || !vector) return formulas.component({ name, index, value: result, of: `${from} times column ${index} of ${matrix}` });
  const bias = letter === "o" ? undefined : learned[`b_${letter}`]?.[index];
  return formulas.projected({ name, from, matrix, index, vector, column: learned[`w_${letter}`][index], bias, result, of });
}

const COLUMNS = ["key", "k", "q · k", "/ √d_k", "mask", "softmax", "", "v"];

export function keyTable(work, say) {
  const [topKey, topValue] = [work.key, work.value].map((vectors) => Math.max(...vectors.map(largest)));
  const rows = work.keys.map((text, i) => {
    const known = { query: work.query, key: work.key[i], raw: work.raw[i], width: work.width, scaled: work.scaled[i], open: work.mask[i], most: work.most, sum: work.sum, weight: work.weights[i] };
    const tell = (name) => () => say(() => formulas[name](known));
    const cell = (name, value) => el("td", {
      class: "num", tabindex: -1, data: { formula: name, key: i }, text: value, on: { pointerenter: tell(name), focus: tell(name) },
    });
    const [from, of] = work.kind === "cross" ? ["y", `y: the encoder’s output for ${isolated(text)}`] : ["x", `x of ${isolated(text)}`];
    const numbers = (letter, vector, top) => strip(vector, {
      label: `${letter}: ${vector.length} numbers`, top, kind: "strip small", tabindex: -1, data: { vector: letter, key: i },
      tell: (index) => say(() => projected(letter, { index, vector: work.memory?.[i], result: vector[index], from, of }, work)),
    });
    return el("tr", { class: work.mask[i] ? "" : "masked" },
      el("th", { scope: "row" }, bdi(text)),
      el("td", {}, numbers("k", work.key[i], topKey)),
      cell("product", fixed(work.raw[i], 2)), cell("scaled", fixed(work.scaled[i], 3)),
      cell("mask", work.mask[i] ? "" : "−∞"), cell("softmax", share(work.weights[i])),
      el("td", { class: "gauge" }, el("span", { css: { width: `${(100 * work.weights[i]).toFixed(2)}%` } })),
      el("td", {}, numbers("v", work.value[i], topValue)));
  });
  const table = el("table", { class: "keys" },
    el("thead", {}, el("tr", {}, ...COLUMNS.map((text) => el("th", { scope: "col", text })))), el("tbody", {}, ...rows));
  walk(table);
  return el("div", { class: "scroll" }, table);
}

// A word of any script inside a line of text that is not its own.
const isolated = (text) => `\u2068${text}\u2069`;

// Arrow keys from number to number and strip to strip, one stop for Tab.
function walk(table) {
  // A phone does not show them all.
  const stops = (row) => [...(row?.querySelectorAll(".num, .strip") ?? [])].filter((stop) => stop.getClientRects().length);
  const first = table.querySelector(".num");
  if (first) first.tabIndex = 0;
  table.addEventListener("keydown", (event) => {
    const stop = event.target.closest(".num, .strip");
    if (!stop || !event.key.startsWith("Arrow")) return;
    const row = stop.closest("tr");
    const line = stops(row);
    const at = line.indexOf(stop);
    const to = {
      ArrowUp: stops(row.previousSibling)[at], ArrowDown: stops(row.nextSibling)[at], ArrowLeft: line[at - 1], ArrowRight: line[at + 1],
    }[event.key];
    event.preventDefault();
    to?.focus();
  });
  table.addEventListener("focusin", (event) => {
    for (const stop of table.querySelectorAll("[tabindex='0']")) stop.tabIndex = -1;
    event.target.tabIndex = 0;
  });
}

// z, W_O, the residual and the norm.
export function after(work, say) {
  const { mixed, shares, output, summed, onward, weights, value, head, pre } = work;
  const state = pre ? "h" : "x";
  const lines = [line(mixed, { name: "z", meaning: "Σ softmax · v: the head’s answer", tell: (index) => say(() => formulas.mixed({ index, weights, values: value, result: mixed[index] })) })];
  if (shares) {
    lines.push(line(shares[head], { name: "z W_O", meaning: `what head ${head + 1} adds to the output`, tell: (index) => say(() => projected("o", {
      index, vector: mixed, result: shares[head][index], name: "(z W_O)", from: "z",
    }, work)) }));
  }
  if (output) {
    lines.push(line(output, { name: "output", meaning: `all ${work.heads} heads joined, times W_O`, tell: (index) => say(() => (shares
      ? formulas.joined({ index, shares: shares.map((share) => share[index]), bias: work.learned?.b_o?.[index], result: output[index] })
      : formulas.component({ name: "output", index, value: output[index], of: "Concat(heads) W_O" }))) }));
  }
  if (summed && output) {
    lines.push(line(summed, { name: `${state} + output`, meaning: "the residual: what was there is kept", tell: (index) => say(() => formulas.residual({
      name: state, index, before: work.before?.[index] ?? summed[index] - output[index], added: output[index], result: summed[index],
    })) }));
  }
  if (onward && !pre) {
    lines.push(line(onward, { name: "norm", meaning: "normalised, on to the next sub-layer", tell: tellNorm({
      name: "norm", from: "x + output", vector: summed, result: onward,
    }, work, say) }));
  }
  return [el("div", { class: "vectors" }, ...lines)];
}

// PyTorch's own: of LayerNorm, and of RMSNorm in float32.
const EPSILON = { layer: 1e-5, rms: 2 ** -23 };

function tellNorm({ name, from, vector, result }, work, say) {
  const average = (of) => vector.reduce((total, one) => total + of(one), 0) / vector.length;
  const kind = work.norm;
  const mean = kind === "rms" ? 0 : average((one) => one);
  const deviation = Math.sqrt(average((one) => (one - mean) ** 2) + EPSILON[kind]);
  return (index) => say(() => formulas.norm({
    name, from, index, value: vector[index], mean, deviation, result: result[index], kind,
    gain: work.learned?.gain?.[index], shift: work.learned?.shift?.[index],
  }));
}
