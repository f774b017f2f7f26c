// The attention that is asked for, from the trace: a layer, some heads or their mean or all layers followed through,
// in pieces or words, with or without special pieces, by weight or by weight times value length.

import { axes, place, ROLLOUTS } from "./axes.js";
import { grouped, headOf, meanOf, normalise, timesLength, vectorOf } from "./matrix.js";

// -> { rows, cols, layers: [{ head, matrix }] }: one entry a head, or one with head null for a mean or a rollout.
export async function attentionOf(app, wanted) {
  const { kind, unit, special, mode } = wanted;
  const { rows, cols } = axes(app.meta, kind, unit);
  const chosen = mode === "rollout" ? [{ head: null, matrix: await rollout(app, kind) }] : await perHead(app, wanted);
  const hidden = hiddenPieces(cols, special);
  const keptRows = rows.filter((row) => special || !row.special);
  const keptCols = cols.filter((col) => special || !col.special);
  const renormalise = !special || wanted.measure === "norm";
  return {
    rows: keptRows,
    cols: keptCols,
    layers: chosen.map(({ head, matrix }) => ({
      head,
      matrix: grouped(renormalise ? normalise(matrix, hidden) : matrix, keptRows.map((row) => row.pieces), keptCols.map((col) => col.pieces)),
    })),
  };
}

function hiddenPieces(units, special) {
  const hidden = [];
  if (!special) for (const unit of units) if (unit.special) for (const piece of unit.pieces) hidden[piece] = true;
  return hidden;
}

async function perHead(app, { kind, layer, heads: wanted, mode, measure }) {
  const name = place(kind, layer);
  const tensors = await app.tensors(`${name}.weights`, ...(measure === "norm" ? [`${name}.value_norm`] : []));
  const weights = tensors.get(`${name}.weights`);
  if (!weights) throw new Error("This trace does not hold that layer’s weights.");
  const lengths = tensors.get(`${name}.value_norm`);
  if (measure === "norm" && !lengths) throw new Error("This trace does not hold the lengths of values: choose weight.");
  const one = (head) => (lengths ? timesLength(headOf(weights, head), vectorOf(lengths, head)) : headOf(weights, head));
  if (mode === "heads") return wanted.filter((head) => head < weights.shape[0]).map((head) => ({ head, matrix: one(head) }));
  return [{ head: null, matrix: meanOf(Array.from({ length: weights.shape[0] }, (_, head) => one(head))) }];
}

async function rollout(app, kind) {
  const tensor = (await app.tensors(ROLLOUTS[kind])).get(ROLLOUTS[kind]);
  if (!tensor) throw new Error("This trace does not hold a rollout.");
  return normalise({ rows: tensor.shape[0], cols: tensor.shape[1], data: tensor.data });
}
