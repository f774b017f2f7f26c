// Positions: the sinusoids that tell the model where a piece stands, and what happens without them.

import { largest } from "../canvas.js";
import { cividis } from "../colour.js";
import { sourceUnits } from "../axes.js";
import { button, note, opening } from "../controls.js";
import { bdi, el, replace, svg } from "../dom.js";
import { dot, matrix } from "../matrix.js";
import { fixed } from "../numbers.js";
import { asking } from "./asking.js";
import { field } from "./heatmap.js";
import { shuffleAnswer } from "./shuffle.js";

const SHOWN = 20; // rows, as in the lecture notes' picture, or as many as the sentence has

export function createPositions(root, app) {
  const map = el("div", { class: "position-map" });
  const curve = el("div", { class: "curve" });
  const likeness = el("div", { class: "likeness" });
  const readout = el("p", { class: "formula", "aria-live": "polite" });
  const answer = el("div", {}, map, readout, el("div", { class: "pair" },
    el("section", {}, el("h3", { text: "One column, over positions" }), curve),
    el("section", {}, el("h3", { text: "How alike two positions are: PE · PEᵀ" }), likeness)));
  root.append(opening("Positions",
    "Attention does not know the order of words: this pattern, added to each embedding, is what tells it. Rows are positions, columns are the numbers of the vector.",
    "That the pattern holds the order does not show that a head uses it."), answer);
  const shuffling = createShuffling(root, app);
  let drawn = null; // the rows that are shown, how many of them are the sentence's, and the mark of a column

  const draw = asking(app, answer, async (meta) => {
    const names = ["position.table", "source.position"].filter((name) => app.has(name));
    const table = (await app.store.tensors(meta, names)).get(names[0]);
    return () => show(table, meta);
  }, (problem) => {
    drawn = null;
    for (const part of [curve, likeness, readout]) replace(part);
    replace(map, problem);
  });

  function show({ shape: [known, cols], data }, meta) {
    const pieces = sourceUnits(meta, "pieces");
    const rows = Math.min(known, Math.max(SHOWN, pieces.length));
    const table = matrix(rows, cols, data.subarray(0, rows * cols));
    const here = el("span", { class: "column-mark" });
    drawn = { table, own: pieces.length, here };
    const cells = field({
      title: `Position encodings: ${rows} positions, ${cols} numbers each`, matrix: table, top: largest(table.data), readout,
      colour: (value) => cividis((value + 1) / 2), start: { row: 0, col: columnNow() }, choose: ({ col }) => app.set({ column: col }),
      tell: (row, col) => { readout.textContent = `${formulaFor(meta.model, row, col)} = ${fixed(table.data[row * cols + col], 4)}`; },
    });
    cells.append(here);
    replace(map, el("div", { class: "position-grid", css: { "--rows": rows } }, rowLabels(rows, pieces), cells));
    replace(likeness, likenessOf(table, readout));
    readout.textContent = "Point at a number for its formula, or walk with the arrow keys; a column that is clicked or walked to shows its curve.";
    mark();
  }

  const columnNow = () => Math.min(app.state.column, drawn.table.cols - 1);

  function mark() {
    if (!drawn) return;
    drawn.here.style.setProperty("--at", (columnNow() + 0.5) / drawn.table.cols);
    replace(curve, drawCurve(drawn.table, columnNow(), drawn.own));
  }

  return {
    update(changed) {
      if (changed.has("meta")) shuffling.reset();
      if (changed.has("meta") || changed.has("theme")) draw();
      else if (changed.has("column")) mark();
    },
  };
}

// The encoder without order; a page that was saved as one file holds one shuffle.
function createShuffling(root, app) {
  let seed = 0;
  const shuffled = el("div", { class: "shuffled" });
  const ask = asking(app, shuffled, async (meta) => {
    const answer = app.store.offline ? await app.store.ask("shuffle", meta) : await app.store.ask("shuffle", meta, { seed });
    return () => replace(shuffled, shuffleAnswer(answer, sourceUnits(meta, "pieces")));
  });
  const mix = button("Shuffle the pieces", () => { seed += 1; ask(); }, { kind: "main", name: "shuffle" });
  mix.disabled = app.store.offline;
  root.append(el("h3", { text: "Shuffle the words" }),
    el("p", { class: "shows", text: "The encoder reads the pieces in another order. Without positions each piece gets the very same vector as before, only in another row: attention is permutation equivariant. With positions it does not." }),
    el("div", { class: "row" }, mix, app.store.offline && note("One shuffle was saved with this page; another needs the server.")), shuffled);
  return {
    reset() {
      replace(shuffled);
      if (app.store.offline) ask();
    },
  };
}

function rowLabels(rows, pieces) {
  const label = (_, row) => el("span", { class: row < pieces.length ? "own" : "" }, pieces[row] ? bdi(pieces[row].text) : "", el("i", { text: String(row) }));
  return el("div", { class: "left", "aria-hidden": "true" }, ...Array.from({ length: rows }, label));
}

function formulaFor({ position, position_base: base, d_model: width }, row, col) {
  if (position === "learned") return `learned position ${row}, number ${col}`;
  const halves = position === "sinusoid-halves";
  const pair = halves ? col % (width / 2) : Math.floor(col / 2);
  const wave = (halves ? col < width / 2 : col % 2 === 0) ? "sin" : "cos";
  return `PE(${row}, ${col}) = ${wave}(${row} / ${base}^(${2 * pair}/${width})) = ${wave}(${fixed(row / base ** ((2 * pair) / width), 4)})`;
}

function drawCurve({ rows, cols, data }, column, own) {
  const top = largest(data);
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

function likenessOf({ rows, cols, data }, readout) {
  const row = (index) => data.subarray(index * cols, (index + 1) * cols);
  const alike = matrix(rows, rows);
  for (let a = 0; a < rows; a += 1) for (let b = 0; b < rows; b += 1) alike.data[a * rows + b] = dot(row(a), row(b));
  const [least, most] = [alike.data.reduce((x, y) => Math.min(x, y)), alike.data.reduce((x, y) => Math.max(x, y))];
  return field({
    title: "Similarity of positions", kind: "heat square", matrix: alike, colour: (value) => cividis((value - least) / (most - least || 1)), readout,
    tell: (a, b) => {
      readout.textContent = `PE(${a}) · PE(${b}) = ${fixed(alike.data[a * rows + b], 2)}   (PE(${a}) · PE(${a}) = ${fixed(alike.data[a * (rows + 1)], 2)})`;
    },
  });
}
