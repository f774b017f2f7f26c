// A heat map with words along its sides, one number under the pointer or the arrow keys.

import { cellAt, drawHeat } from "../canvas.js";
import { bdi, el } from "../dom.js";

// `tell(row, col)` is called with the cell that is pointed at; -> the element, with `.mark(row, col)` to point from outside.
export function heatmap({ title, rows, cols, matrix, top, colour, tell, size = 26 }) {
  const canvas = drawHeat(el("canvas", { class: "heat", tabindex: 0, role: "img", "aria-label": title }), matrix, { top, colour });
  const cursor = el("span", { class: "cell", hidden: true });
  const left = rows.map((text) => el("span", {}, bdi(text)));
  const above = cols.map((text) => el("span", {}, bdi(text)));
  const figure = el("figure", { class: "heatmap", css: { "--cell": `${size}px`, "--rows": rows.length, "--cols": cols.length } },
    el("figcaption", { text: title }),
    el("div", { class: "above", "aria-hidden": "true" }, ...above),
    el("div", { class: "left", "aria-hidden": "true" }, ...left),
    el("div", { class: "field" }, canvas, cursor));
  let at = { row: 0, col: 0 };

  figure.mark = (row, col) => {
    at = { row, col };
    cursor.hidden = false;
    cursor.style.setProperty("--row", row);
    cursor.style.setProperty("--col", col);
    left.forEach((label, i) => label.classList.toggle("lit", i === row));
    above.forEach((label, i) => label.classList.toggle("lit", i === col));
  };
  const point = (row, col) => {
    figure.mark(row, col);
    tell(row, col);
  };
  canvas.addEventListener("pointermove", (event) => {
    const cell = cellAt(canvas, event, matrix);
    if (cursor.hidden || cell.row !== at.row || cell.col !== at.col) point(cell.row, cell.col);
  });
  canvas.addEventListener("focus", () => point(at.row, at.col));
  canvas.addEventListener("keydown", (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const within = (value, count) => Math.min(Math.max(value, 0), count - 1);
    point(within(at.row + move[0], matrix.rows), within(at.col + move[1], matrix.cols));
  });
  return figure;
}

// Cells as large as fit `room` pixels beside their labels, within reason.
export function cellSize(count, room, labels = 110) {
  return Math.max(12, Math.min(28, Math.floor((room - labels) / Math.max(count, 1))));
}
