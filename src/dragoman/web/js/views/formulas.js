// The formulas with their values filled in, as lines of text.

import { compact, fixed, share } from "../numbers.js";

const bracketed = (value) => (value < 0 ? `(${compact(value)})` : compact(value));

// a₁b₁ + a₂b₂ + … + aₙbₙ
function sumOfProducts(a, b) {
  const term = (i) => `${bracketed(a[i])}·${bracketed(b[i])}`;
  if (a.length <= 4) return Array.from(a, (_, i) => term(i)).join(" + ");
  return `${term(0)} + ${term(1)} + ${term(2)} + … + ${term(a.length - 1)}`;
}

export const formulas = {
  product: ({ query, key, raw }) => `q · k = ${sumOfProducts(query, key)} = ${fixed(raw, 3)}   (${query.length} products)`,
  scaled: ({ raw, width, scaled }) => `q · k / √d_k = ${fixed(raw, 3)} / √${width} = ${fixed(raw, 3)} / ${fixed(Math.sqrt(width), 3)} = ${fixed(scaled, 3)}`,
  mask: ({ open, scaled }) => (open ? `This key may be looked at: the score stays ${fixed(scaled, 3)}.` : "This key is still to come: its score becomes −∞, its weight 0."),
  softmax: ({ open, scaled, most, sum, weight }) => (open
    ? `softmax = e^(${fixed(scaled, 3)} − ${fixed(most, 3)}) / Σ e^(score − ${fixed(most, 3)}) = ${fixed(Math.exp(scaled - most), 4)} / ${fixed(sum, 4)} = ${share(weight)}   (the largest score is taken away first: same result, no overflow)`
    : "e^(−∞) = 0: a masked key gets no weight."),
  mixed: ({ index, weights, values, result }) => {
    const order = [...weights.keys()].sort((a, b) => weights[b] - weights[a]);
    const terms = order.slice(0, 3).map((key) => `${share(weights[key])}·${bracketed(values[key][index])}`);
    return `z[${index}] = Σ weight · v[${index}] = ${terms.join(" + ")}${weights.length > 3 ? " + …" : ""} = ${fixed(result, 4)}   (largest weights first)`;
  },
  component: ({ name, index, value, of }) => `${name}[${index}] = ${fixed(value, 4)}${of ? `   (${of})` : ""}`,
  residual: ({ index, before, added, result }) => `x[${index}] + output[${index}] = ${fixed(before, 4)} + ${bracketed(added)} = ${fixed(result, 4)}`,
  norm: ({ index, value, mean, deviation, result, kind }) => (kind === "rms"
    ? `${fixed(value, 4)} / ${fixed(deviation, 4)} = ${fixed(value / deviation, 4)}, times the learned gain: ${fixed(result, 4)}   [${index}]`
    : `(${fixed(value, 4)} − ${bracketed(mean)}) / ${fixed(deviation, 4)} = ${fixed((value - mean) / deviation, 4)}, times the learned gain, plus bias: ${fixed(result, 4)}   [${index}]`),
};
