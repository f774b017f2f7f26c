// What stands beside a matrix of attention: who looks (rows, queries) and who is looked at (columns, keys).

const PLACES = { cross: "cross_attention", encoder_self: "self_attention", decoder_self: "self_attention" };

export const KINDS = { cross: "target to source", encoder_self: "source to itself", decoder_self: "target to itself" };

// The trace brings its rollouts along: all layers followed through, half of each step being the residual.
export const ROLLOUTS = { cross: "rollout.cross", encoder_self: "rollout.encoder", decoder_self: "rollout.target" };

// "cross", 2 -> "decoder.2.cross_attention"
export function place(kind, layer) {
  return `${kind === "encoder_self" ? "encoder" : "decoder"}.${layer}.${PLACES[kind]}`;
}

export function layersOf(meta, kind) {
  return kind === "encoder_self" ? meta.model.encoder_layers : meta.model.decoder_layers;
}

// Spans are counted in characters; a string here is counted in halves of some of them.
export function slice(text, start, end) {
  return Array.from(text).slice(start, end).join("");
}

// A piece as it is read; one that is but a space has a sign for it, one that shows nothing its name.
export function shown(piece) {
  const text = (piece.text ?? "").trim();
  return text === "▁" ? "␣" : text || piece.piece;
}

// The decoder reads the begin piece, and then what it has written: its input is the target, one place later.
export function decoderInput(meta) {
  const begin = meta.begin ?? { id: -1, piece: "<s>" };
  const first = { ...begin, text: "", special: true, word: null, start: 0, end: 0 };
  return [first, ...meta.target.pieces.slice(0, -1)];
}

// Words and the pieces of none, in their order: a piece that is not in the vocabulary may stand within a word, which
// stays one. `shift` is how much later the pieces stand than their words say.
function unitsOf(pieces, words, unit, shift = 0) {
  const units = unit !== "words" ? [] : words.map((word, index) => ({
    text: word.text, pieces: word.pieces.map((piece) => piece + shift).filter((piece) => piece < pieces.length), word: index, special: false,
  })).filter((one) => one.pieces.length);
  const taken = new Set(units.flatMap((one) => one.pieces));
  pieces.forEach((piece, index) => {
    if (!taken.has(index)) units.push({ text: shown(piece), pieces: [index], word: piece.word ?? null, special: Boolean(piece.special) });
  });
  return units.sort((a, b) => a.pieces[0] - b.pieces[0]);
}

export function sourceUnits(meta, unit) {
  return unitsOf(meta.source.pieces, meta.source.words, unit);
}

export function targetUnits(meta, unit) {
  return unitsOf(meta.target.pieces, meta.target.words, unit);
}

function inputUnits(meta, unit) {
  return unitsOf(decoderInput(meta), meta.target.words, unit, 1);
}

// -> { rows, cols }, each a list of { text, pieces, special }: `pieces` are positions in the tensor.
export function axes(meta, kind, unit) {
  if (kind === "cross") return { rows: targetUnits(meta, unit), cols: sourceUnits(meta, unit) };
  const units = kind === "encoder_self" ? sourceUnits(meta, unit) : inputUnits(meta, unit);
  return { rows: units, cols: units };
}

// Whose pieces a row or a column of that kind shows, as the manuscript numbers them (the decoder's input is shifted).
export function inManuscript(kind, axis, pieces) {
  if (kind === "encoder_self") return { side: "source", pieces };
  if (kind === "decoder_self") return { side: "target", pieces: pieces.map((piece) => piece - 1).filter((piece) => piece >= 0) };
  return { side: axis === "rows" ? "target" : "source", pieces };
}
