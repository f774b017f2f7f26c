// The formulas with their values filled in, as lines of text.

import { compact, fixed, share } from "../numbers.js";

const TERMS = 3;

const filled = (value) => (Math.abs(value) < 1e-3 ? compact(value) : fixed(value, 4));
const bracketed = (value) => (value < 0 ? `(${filled(value)})` : filled(value));
const times = (a, b) => `${bracketed(a)}·${bracketed(b)}`;

// Σ aᵢbᵢ as its largest terms, and what the others come to: { text, first: which terms are shown }.
function sumOfProducts(a, b, term = times) {
  const size = (i) => Math.abs(a[i] * b[i]);
  const order = [...a.keys()].sort((i, j) => size(j) - size(i));
  const first = order.slice(0, TERMS);
  const terms = first.map((i) => term(a[i], b[i], i));
  if (order.length > TERMS) terms.push("…", `the rest (${fixed(order.slice(TERMS).reduce((sum, i) => sum + a[i] * b[i], 0), 4)})`);
  return { text: terms.join(" + "), first };
}

const largestOf = ({ first }, count) => (count > TERMS ? `i = ${first.join(", ")}: the largest of ${count} products` : `${count} products`);
const aside = (...remarks) => (remarks.some(Boolean) ? `   (${remarks.filter(Boolean).join("; ")})` : "");

export const formulas = {
  product: ({ query, key, raw }) => {
    const sum = sumOfProducts(query, key);
    return `q · k = Σᵢ q[i]·k[i] = ${sum.text} = ${fixed(raw, 3)}${aside(largestOf(sum, query.length))}`;
  },
  scaled: ({ raw, width, scaled }) => `q · k / √d_k = ${fixed(raw, 3)} / √${width} = ${fixed(raw, 3)} / ${fixed(Math.sqrt(width), 3)} = ${fixed(scaled, 3)}`,
  mask: ({ open, scaled }) => (open ? `This key may be looked at: the score stays ${fixed(scaled, 3)}.` : "This key is still to come: its score becomes −∞, its weight 0."),
  softmax: ({ open, scaled, most, sum, weight }) => (open
    ? `softmax = e^(${fixed(scaled, 3)} − ${fixed(most, 3)}) / Σ e^(score − ${fixed(most, 3)}) = ${fixed(Math.exp(scaled - most), 4)} / ${fixed(sum, 4)} = ${share(weight)}   (the largest score is taken away first: same result, no overflow)`
    : "e^(−∞) = 0: a masked key gets no weight."),
  mixed: ({ index, weights, values, result }) => {
    const column = values.map((value) => value[index]);
    const { text } = sumOfProducts(weights, column, (weight, value) => `${share(weight)}·${bracketed(value)}`);
    return `z[${index}] = Σ softmax·v[${index}] = ${text} = ${fixed(result, 4)}${aside(weights.length > TERMS ? `the largest of ${weights.length} keys’ parts` : "")}`;
  },
  component: ({ name, index, value, of }) => `${name}[${index}] = ${fixed(value, 4)}${aside(of)}`,
  embedded: ({ name, index, piece, position, result }) => `${name}[${index}] = embedding·√d_model + position = ${fixed(piece, 4)} + ${bracketed(position)} = ${fixed(result, 4)}`,
  // One number of x W: `column` is the column of W that makes it.
  projected: ({ name, from, matrix, index, vector, column, bias, result, of }) => {
    const sum = sumOfProducts(vector, column);
    const shift = bias === undefined ? "" : ` + the bias (${fixed(bias, 4)})`;
    return `${name}[${index}] = Σᵢ ${from}[i]·${matrix}[i,${index}] = ${sum.text}${shift} = ${fixed(result, 4)}${aside(largestOf(sum, vector.length), of)}`;
  },
  joined: ({ index, shares, bias, result }) => {
    const { text } = sumOfProducts(shares, shares.map(() => 1), (part, _, head) => `head ${head + 1}: ${bracketed(part)}`);
    const shift = bias === undefined ? "" : ` + the bias (${fixed(bias, 4)})`;
    return `output[${index}] = (Concat(heads) W_O)[${index}] = ${text}${shift} = ${fixed(result, 4)}`;
  },
  residual: ({ name, index, before, added, result }) => `${name}[${index}] + output[${index}] = ${fixed(before, 4)} + ${bracketed(added)} = ${fixed(result, 4)}`,
  norm: ({ name, from, index, value, mean, deviation, gain, shift, result, kind }) => {
    const top = kind === "rms" ? fixed(value, 4) : `(${fixed(value, 4)} − ${bracketed(mean)})`;
    const even = `${top} / ${fixed(deviation, 4)}`;
    if (gain === undefined) return `${name}[${index}] = ${even}, times the learned gain${kind === "rms" ? "" : ", plus bias"} = ${fixed(result, 4)}`;
    return `${name}[${index}] = ${even} · gain ${bracketed(gain)}${shift === undefined ? "" : ` + bias ${bracketed(shift)}`} = ${fixed(result, 4)}${aside(kind === "rms" ? `${fixed(deviation, 4)}: the root of the mean square of ${from}` : `mean and deviation of ${from}`)}`;
  },
};
