// Positions: the sinusoids that tell the model where a piece stands, and what happens without them.

import { cellAt, drawHeat, largest } from "../canvas.js";
import { cividis } from "../colour.js";
import { sourceUnits } from "../axes.js";
import { button, note, opening } from "../controls.js";
import { bdi, el, replace, svg } from "../dom.js";
import { latest } from "../latest.js";
import { dot, matrix } from "../matrix.js";
import { fixed } from "../numbers.js";
import { shuffleAnswer } from "./shuffle.js";

const SHOWN = 20; // rows, as in the lecture notes' picture, or as many as the sentence has

export function createPositions(root, app) {
  const map = el("div", { class: "position-map" });
  const curve = el("div", { class: "curve" });
  const likeness = el("div", { class: "likeness" });
  const readout = el("p", { class: "formula" });
  const shuffled = el("div", { class: "shuffled" });
  let seed = 0;
  const mix = button("Shuffle the pieces", () => { seed += 1; shuffle(); }, { kind: "main", name: "shuffle" });
  root.append(opening("Positions",
    "Attention does not know the order of words: this pattern, added to each embedding, is what tells it. Rows are positions, columns are the numbers of the vector.",
    "That the pattern holds the order does not show that a head uses it."),
  map, readout,
  el("div", { class: "pair" }, el("section", {}, el("h3", { text: "One column, over positions" }), curve),
    el("section", {}, el("h3", { text: "How alike two positions are: PE · PEᵀ" }), likeness)),
  el("h3", { text: "Shuffle the words" }),
  el("p", { class: "shows", text: "The encoder reads the pieces in another order. Without positions each piece gets the very same vector as before, only in another row: attention is permutation equivariant. With positions it does not." }),
  el("div", { class: "row" }, mix), shuffled);

  const shuffle = latest(async () => {
    const answer = await app.store.ask("shuffle", app.meta, { seed });
    return () => replace(shuffled, shuffleAnswer(answer, sourceUnits(app.meta, "pieces")));
  }, (problem) => replace(shuffled, problem));

  const draw = latest(async () => {
    const names = ["position.table", "source.position"].filter((name) => app.has(name));
    const table = (await app.tensors(...names)).get(names[0]);
    return () => show(table);
  }, (problem) => replace(map, problem));

  function show(table) {
    const words = sourceUnits(app.meta, "pieces");
    const rows = Math.min(table.shape[0], Math.max(SHOWN, words.length));
    const cols = table.shape[1];
    const shown = matrix(rows, cols, table.data.subarray(0, rows * cols));
    const columnNow = Math.min(app.state.column, cols - 1);
    const top = largest(shown.data);
    const canvas = drawHeat(el("canvas", { class: "heat wide", tabindex: 0, role: "img", "aria-label": `Position encodings: ${rows} positions, ${cols} numbers each` }), shown, { top, colour: (value) => cividis((value + 1) / 2) });
    const here = el("span", { class: "column-mark", css: { "--at": (columnNow + 0.5) / cols } });
    const labels = el("div", { class: "left", "aria-hidden": "true" }, ...Array.from({ length: rows }, (_, row) => el("span", { class: row < words.length ? "own" : "" }, words[row] ? bdi(words[row].text) : "", el("i", { text: String(row) }))));
    const tell = (row, col) => { readout.textContent = `${formulaFor(app.meta.model, row, col)} = ${fixed(shown.data[row * cols + col], 4)}`; };
    canvas.addEventListener("pointermove", (event) => { const { row, col } = cellAt(canvas, event, shown); tell(row, col); });
    canvas.addEventListener("click", (event) => app.set({ column: cellAt(canvas, event, shown).col }));
    canvas.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!move) return;
      event.preventDefault();
      app.set({ column: Math.min(Math.max(app.state.column + move, 0), cols - 1) });
    });
    const hadFocus = map.contains(document.activeElement);
    replace(map, el("div", { class: "position-grid", css: { "--rows": rows } }, labels, el("div", { class: "field" }, canvas, here)));
    if (hadFocus) canvas.focus({ preventScroll: true });
    readout.textContent = "Point at a number for its formula; click a column, or use ← and →, for its curve.";
    replace(curve, drawCurve(shown, columnNow, words.length, top));
    replace(likeness, drawLikeness(shown, readout));
  }

  return {
    update(changed) {
      if (changed.has("meta")) replace(shuffled, app.store.offline && note("Shuffling needs the server: this page was saved as one file."));
      mix.disabled = app.store.offline;
      if (["meta", "column", "theme"].some((name) => changed.has(name))) draw();
    },
  };
}

function formulaFor({ position, position_base: base, d_model: width }, row, col) {
  if (position === "learned") return `learned position ${row}, number ${col}`;
  const halves = position === "sinusoid-halves";
  const pair = halves ? col % (width / 2) : Math.floor(col / 2);
  const wave = (halves ? col < width / 2 : col % 2 === 0) ? "sin" : "cos";
  return `PE(${row}, ${col}) = ${wave}(${row} / ${base}^(${2 * pair}/${width})) = ${wave}(${fixed(row / base ** ((2 * pair) / width), 4)})`;
}

function drawCurve({ rows, cols, data }, column, own, top) {
  const x = (row) => 10 + (row * 380) / Math.max(rows - 1, 1);
  const y = (value) => 70 - (value * 56) / (top || 1);
  const at = (row) => data[row * cols + column];
  const line = Array.from({ length: rows }, (_, row) => `${row ? "L" : "M"}${x(row).toFixed(1)},${y(at(row)).toFixed(1)}`).join("");
  const dots = Array.from({ length: rows }, (_, row) => svg("circle", { class: row < own ? "own" : "", cx: x(row), cy: y(at(row)), r: row < own ? 3.5 : 2 }));
  return svg("svg", { class: "plot", viewBox: "0 0 400 160", role: "img", "aria-label": `Number ${column} of the position vector, over ${rows} positions` },
    svg("line", { x1: 10, x2: 390, y1: 70, y2: 70, class: "axis" }), svg("path", { d: line, class: "line" }), ...dots,
    svg("text", { x: 10, y: 152, text: "position 0" }), svg("text", { x: 390, y: 152, "text-anchor": "end", text: String(rows - 1) }),
    svg("text", { x: 200, y: 152, "text-anchor": "middle", text: `column ${column}` }));
}

function drawLikeness(table, readout) {
  const { rows, cols, data } = table;
  const row = (index) => data.subarray(index * cols, (index + 1) * cols);
  const alike = matrix(rows, rows);
  for (let a = 0; a < rows; a += 1) for (let b = 0; b < rows; b += 1) alike.data[a * rows + b] = dot(row(a), row(b));
  const [least, most] = [Math.min(...alike.data), Math.max(...alike.data)];
  const canvas = drawHeat(el("canvas", { class: "heat square", role: "img", "aria-label": "Similarity of positions" }), alike, { colour: (value) => cividis((value - least) / (most - least || 1)) });
  canvas.addEventListener("pointermove", (event) => {
    const { row: a, col: b } = cellAt(canvas, event, alike);
    readout.textContent = `PE(${a}) · PE(${b}) = ${fixed(alike.data[a * rows + b], 2)}   (PE(${a}) · PE(${a}) = ${fixed(alike.data[a * (rows + 1)], 2)})`;
  });
  return canvas;
}

