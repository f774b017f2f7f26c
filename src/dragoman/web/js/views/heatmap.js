// A heat map with words along its sides, one number under the pointer or the arrow keys.

import { cellAt, drawHeat } from "../canvas.js";
import { bdi, el } from "../dom.js";

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const within = (value, count) => Math.min(Math.max(value, 0), count - 1);

// A canvas with a number a pixel, walked with the pointer or the arrow keys. `tell(row, col)` writes of a cell into the
// readout, which is also what the canvas is called from then on; `choose({ row, col })` hears of clicks and keys alone.
// -> the field, with `.mark(row, col)` to point from outside and `.canvas`.
export function field({ title, matrix, top, colour, tell, choose, readout, start = { row: 0, col: 0 }, kind = "heat" }) {
  const canvas = drawHeat(el("canvas", {
    class: kind, tabindex: 0, role: "application", "aria-roledescription": "heat map", "aria-label": `${title}. Walk with the arrow keys.`,
  }), matrix, { top, colour });
  const cursor = el("span", { class: "cell", hidden: true });
  const node = el("div", { class: "field", css: { "--rows": matrix.rows, "--cols": matrix.cols } }, canvas, cursor);
  let at = start;

  node.canvas = canvas;
  node.mark = (row, col) => {
    at = { row, col };
    cursor.hidden = false;
    cursor.style.setProperty("--row", row);
    cursor.style.setProperty("--col", col);
  };
  const point = ({ row, col }) => {
    node.mark(row, col);
    tell(row, col);
    canvas.setAttribute("aria-label", `${title}. ${readout.textContent}`);
  };
  canvas.addEventListener("pointermove", (event) => {
    const cell = cellAt(canvas, event, matrix);
    if (cursor.hidden || cell.row !== at.row || cell.col !== at.col) point(cell);
  });
  canvas.addEventListener("click", (event) => choose?.(cellAt(canvas, event, matrix)));
  canvas.addEventListener("focus", () => point(at));
  canvas.addEventListener("keydown", (event) => {
    const move = MOVES[event.key];
    if (!move) return;
    event.preventDefault();
    point({ row: within(at.row + move[0], matrix.rows), col: within(at.col + move[1], matrix.cols) });
    choose?.(at);
  });
  return node;
}

// -> the figure, with `.mark(row, col)` to point from outside, and `.now({ row, col })` for where the translation stands.
export function heatmap({ rows, cols, size = 26, ...drawn }) {
  const left = rows.map((text) => el("span", {}, bdi(text)));
  const above = cols.map((text) => el("span", {}, bdi(text)));
  const light = (name, at) => {
    left.forEach((label, i) => label.classList.toggle(name, i === at.row));
    above.forEach((label, i) => label.classList.toggle(name, i === at.col));
  };
  const cells = field({ ...drawn, tell: (row, col) => {
    light("lit", { row, col });
    drawn.tell(row, col);
  } });
  const figure = el("figure", { class: "heatmap", css: { "--cell": `${size}px`, "--rows": rows.length, "--cols": cols.length } },
    el("figcaption", { text: drawn.title }),
    el("div", { class: "above", "aria-hidden": "true" }, ...above),
    el("div", { class: "left", "aria-hidden": "true" }, ...left), cells);
  figure.mark = (row, col) => {
    cells.mark(row, col);
    light("lit", { row, col });
  };
  figure.now = (at) => light("now", at);
  return figure;
}

// Cells as large as fit `room` pixels beside their labels, within reason.
export function cellSize(count, room, labels = 110) {
  return Math.max(12, Math.min(28, Math.floor((room - labels) / Math.max(count, 1))));
}

// The place of the word that is being written, or -1: a view follows the step by it.
export function wordNow(app) {
  return app.state.step === null ? -1 : app.meta.target.pieces[app.step].word ?? -1;
}
