// Heat maps and strips of numbers on canvas: one pixel a number, scaled up by the browser without smoothing.

import { cividis, signed, token } from "./colour.js";

// Draw a matrix of shares into a canvas, `cell` pixels a number (whole, so that edges stay sharp).
export function drawHeat(canvas, { rows, cols, data }, { top = 1, colour = cividis } = {}) {
  canvas.width = cols;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(cols, rows);
  for (let i = 0; i < data.length; i += 1) {
    const [red, green, blue] = colour(data[i] / top);
    image.data.set([red, green, blue, 255], i * 4);
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

// A vector as a strip: blue below zero, orange above, the page's own paper at zero.
export function drawStrip(canvas, vector, top) {
  const middle = token("--panel");
  const reach = top ?? largest(vector);
  return drawHeat(canvas, { rows: 1, cols: vector.length, data: vector }, {
    top: reach || 1, colour: (value) => signed(value, middle),
  });
}

export function largest(vector) {
  let top = 0;
  for (const value of vector) top = Math.max(top, Math.abs(value));
  return top;
}

// Which number of the matrix the pointer is on.
export function cellAt(canvas, event, { rows, cols }) {
  const box = canvas.getBoundingClientRect();
  const col = Math.floor(((event.clientX - box.left) / box.width) * cols);
  const row = Math.floor(((event.clientY - box.top) / box.height) * rows);
  return { row: Math.min(Math.max(row, 0), rows - 1), col: Math.min(Math.max(col, 0), cols - 1) };
}
