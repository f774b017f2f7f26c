// The arithmetic between a trace's tensors and what is drawn. A matrix is { rows, cols, data }, row by row.

export function matrix(rows, cols, data = new Float32Array(rows * cols)) {
  return { rows, cols, data };
}

// One head of a tensor (heads, rows, cols), without copying.
export function headOf({ shape: [, rows, cols], data }, head) {
  return matrix(rows, cols, data.subarray(head * rows * cols, (head + 1) * rows * cols));
}

export function meanOf(matrices) {
  const mean = matrix(matrices[0].rows, matrices[0].cols);
  for (const { data } of matrices) for (let i = 0; i < data.length; i += 1) mean.data[i] += data[i] / matrices.length;
  return mean;
}

// The vector at [head, row] of (heads, rows, width), or at [row] of (rows, width).
export function vectorOf({ shape, data }, ...at) {
  const width = shape[shape.length - 1];
  const index = at.length === 2 ? at[0] * shape[1] + at[1] : at[0];
  return data.subarray(index * width, (index + 1) * width);
}

export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += a[i] * b[i];
  return sum;
}

// Weight times the length of the value that it lets through: a head may look hard at a word that has nothing to say.
export function timesLength({ rows, cols, data }, lengths) {
  return matrix(rows, cols, data.map((weight, i) => weight * lengths[i % cols]));
}

// Every row adds up to one again, over the columns that stay.
export function normalise({ rows, cols, data }, hidden = []) {
  const result = matrix(rows, cols);
  for (let row = 0; row < rows; row += 1) {
    let sum = 0;
    for (let col = 0; col < cols; col += 1) if (!hidden[col]) sum += data[row * cols + col];
    for (let col = 0; col < cols; col += 1) {
      if (!hidden[col] && sum > 0) result.data[row * cols + col] = data[row * cols + col] / sum;
    }
  }
  return result;
}

// Groups of pieces: attention to a word is the sum over its pieces, attention from a word the mean over its pieces.
export function grouped({ cols, data }, rowGroups, colGroups) {
  const result = matrix(rowGroups.length, colGroups.length);
  rowGroups.forEach((pieces, row) => {
    colGroups.forEach((parts, col) => {
      let sum = 0;
      for (const piece of pieces) for (const part of parts) sum += data[piece * cols + part];
      result.data[row * colGroups.length + col] = sum / pieces.length;
    });
  });
  return result;
}

// Rank correlation of two lists (Spearman): do they put things in the same order?
export function rankCorrelation(a, b) {
  const [left, right] = [ranks(a), ranks(b)];
  const middle = (a.length - 1) / 2;
  let [both, one, other] = [0, 0, 0];
  left.forEach((rank, i) => {
    both += (rank - middle) * (right[i] - middle);
    one += (rank - middle) ** 2;
    other += (right[i] - middle) ** 2;
  });
  return one && other ? both / Math.sqrt(one * other) : 0;
}

function ranks(values) {
  const order = [...values.keys()].sort((a, b) => values[a] - values[b]);
  const result = new Array(values.length);
  for (let start = 0; start < order.length; ) {
    let end = start;
    while (end + 1 < order.length && values[order[end + 1]] === values[order[start]]) end += 1;
    for (let i = start; i <= end; i += 1) result[order[i]] = (start + end) / 2;
    start = end + 1;
  }
  return result;
}
