// The lecture notes' path, on the person's own sentence: each step opens a real view and speaks of its real numbers.

import { place, shown, sourceUnits } from "./axes.js";
import { said } from "./dom.js";
import { largest } from "./canvas.js";
import { dot, vectorOf } from "./matrix.js";
import { compact, fixed, percent, share, thousands } from "./numbers.js";

const few = (vector) => `${Array.from(vector.slice(0, 4), compact).join(", ")}, …`;

// In the middle of the translation; of one that is but its end, there.
function halfway(app) {
  const step = Math.min(Math.max(1, Math.floor(app.lastStep / 2)), app.lastStep);
  return { step, state: step === app.lastStep ? null : step };
}

const CHANGE = {
  sinusoid: "the left columns change fast, those on the right slowly, like the hands of a clock",
  "sinusoid-halves": "sines fill the left half and cosines the right, and in each the left columns change fast, the others slowly, like the hands of a clock",
  learned: "training found them, like the embeddings, and nobody gave them an order from left to right",
};

// The piece that the lesson follows: a pronoun if there is one, since what it stands for must be found elsewhere.
function follow(meta) {
  const pieces = meta.source.pieces;
  const own = pieces.map((piece, index) => ({ piece, index })).filter(({ piece }) => !piece.special);
  const pronoun = own.find(({ piece }) => /(^|['’])(il|elle|ils|elles|it|he|she|they|er|sie|es)$/iu.test(shown(piece)));
  return (pronoun ?? own[Math.floor(own.length / 2)] ?? { index: 0 }).index;
}

// The head in which that piece looks hardest at another word, though not at nothing else.
async function telling(app, query) {
  const { meta } = app;
  const heads = meta.heads.filter((head) => head.kind === "encoder_self");
  const name = (head) => `${place("encoder_self", head.layer)}.weights`;
  const tensors = await app.tensors(...new Set(heads.map(name)));
  const elsewhere = (head) => Math.max(0, ...Array.from(vectorOf(tensors.get(name(head)), head.head, query)).filter((weight, key) => {
    const { special, word, text } = meta.source.pieces[key];
    return !special && /\p{L}/u.test(text) && word !== meta.source.pieces[query].word && weight < 0.9;
  }));
  return heads.map((head) => [elsewhere(head), head]).reduce((best, one) => (one[0] > best[0] ? one : best))[1];
}

// What the first half of the lesson looks at, worked out once a step.
async function scene(app) {
  const { meta } = app;
  const query = follow(meta);
  const head = await telling(app, query);
  const name = place("encoder_self", head.layer);
  const parts = ["query", "key", "value", "scores", "weights", "mixed", "output"].map((part) => `${name}.${part}`);
  const tensors = await app.tensors(...parts);
  const at = (part, ...where) => vectorOf(tensors.get(`${name}.${part}`), ...where);
  const weights = at("weights", head.head, query);
  const best = weights.indexOf(Math.max(...weights));
  const text = (index) => shown(meta.source.pieces[index]);
  const state = { view: "microscope", kind: "encoder_self", layer: head.layer, heads: [head.head], mode: "heads", query };
  return { meta, query, head, at, weights, best, text, who: text(query), state };
}

export const STEPS = [
  ["Pieces become vectors", async (app) => {
    const { meta, who, query, state } = await scene(app);
    const piece = meta.source.pieces[query];
    const embedded = (await app.tensors("source.embedded")).get("source.embedded");
    const name = meta.model.norm_order === "pre" ? "h" : "x"; // x is normalised already where the norm comes first
    return [{ ...state, layer: 0 }, `Your sentence was cut into ${meta.source.pieces.length} pieces from a vocabulary of ${thousands(meta.model.vocab_size)}. `, said(who), ` is number ${thousands(piece.id)} there, and stands for a row of ${meta.model.d_model} numbers that training found: its embedding. The strip ${name} is that row with its position added, as it comes into the first layer. Here it begins ${few(vectorOf(embedded, query))}`];
  }],
  ["Query, key, value", async (app) => {
    const { meta, who, at, head, query, state } = await scene(app);
    return [state, "Three matrices make three vectors of each x: a query, what it looks for; a key, what it can be found by; a value, what it hands over. They are shorter, ", `${meta.model.d_k} numbers here. The query of `, said(who), ` begins ${few(at("query", head.head, query))} Every row of the table has its key on the left and its value on the right.`];
  }],
  ["A score for every pair", async (app) => {
    const { who, at, head, query, best, text, state } = await scene(app);
    const raw = dot(at("query", head.head, query), at("key", head.head, best));
    return [state, "How well does a key fit the query? Multiply them number by number and add up. ", said(who), " with ", said(text(best)), ` gives q · k = ${fixed(raw, 2)}. Point at that number to see the products.`];
  }],
  ["Scaled", async (app) => {
    const { meta, at, head, query, best, state } = await scene(app);
    const raw = dot(at("query", head.head, query), at("key", head.head, best));
    const root = Math.sqrt(meta.model.d_k);
    return [state, `A sum of ${meta.model.d_k} products grows with their number, and a softmax of large numbers is all or nothing. So each score is divided by √${meta.model.d_k} = ${fixed(root, 2)}: ${fixed(raw, 2)} becomes ${fixed(raw / root, 3)}.`];
  }],
  ["Softmax: shares of one", async (app) => {
    const { who, weights, best, text, state } = await scene(app);
    return [state, "Raise e to each score and divide by the sum: now all are positive and add up to one. ", said(who), " gives ", said(text(best)), ` ${share(weights[best])} of its attention, the most of all, and ${share(weights[weights.indexOf(Math.min(...weights))])} to the one it cares least for.`];
  }],
  ["A weighted sum of values", async (app) => {
    const { who, at, head, query, best, text, weights, state } = await scene(app);
    return [state, "Each value is multiplied by its share, and all are added: z, the head’s answer. Values of pieces with small shares hardly sound. With ", percent(weights[best]), " of it, the value of ", said(text(best)), " is heard most, and so ", said(who), ` now knows something of it. z begins ${few(at("mixed", head.head, query))}`];
  }],
  ["Many heads", async (app) => {
    const { meta } = app;
    const count = meta.heads.filter((head) => head.kind === "encoder_self").length;
    return [{ view: "map", kind: "encoder_self", sort: "place", layer: 0 }, `That was one head. Each has matrices of its own and looks for something else: ${meta.model.heads} of them side by side in each of ${meta.model.encoder_layers} layers, ${count} in the encoder. Bright diagonals look at neighbours; bright columns look at one piece from everywhere.`];
  }],
  ["Joined by W_O", async (app) => {
    const { meta, at, query, state } = await scene(app);
    return [state, `The ${meta.model.heads} answers of ${meta.model.d_v} numbers are laid end to end and multiplied by one more matrix, W_O, that mixes them into ${meta.model.d_model} numbers again: the strip called output. Its largest number is ${fixed(largest(at("output", query)), 3)} in size.`];
  }],
  ["Where in the sentence?", async (app) => {
    const units = sourceUnits(app.meta, "pieces");
    return [{ view: "positions", column: 0 }, `Nothing so far knew the order: shuffle the words, and every piece gets the same answer. So to each embedding a pattern is added that tells its position. Your ${units.length} pieces have the first ${units.length} rows; ${CHANGE[app.meta.model.position] ?? CHANGE.learned}. Shuffle the pieces below to see the difference.`];
  }],
  ["Residual and norm", async (app) => {
    const { meta, state } = await scene(app);
    const post = meta.model.norm_order === "post";
    return [state, `What the layer found is added to what was there: x + output. Nothing is lost by passing through, and layers can be stacked, ${meta.model.encoder_layers} of them here. ${post ? "Then the sum is normalised, so that numbers neither explode nor fade." : "This model normalises before each sub-layer, so that numbers neither explode nor fade."} A small network of ${meta.model.d_ff} hidden numbers then works on each piece by itself, with a residual of its own.`];
  }],
  ["From encoder to decoder", async (app) => {
    const layer = app.meta.alignment_layer ?? 0;
    return [{ view: "threads", kind: "cross", layer, mode: "mean", unit: "words", step: null }, "The encoder has read the whole source. The decoder now asks it: queries come from the piece about to be written, keys and values from the encoder’s output. These threads are that attention, in ", `layer ${layer + 1}. Hover over a word of the translation to see where it came from.`];
  }],
  ["The mask", async (app) => {
    const { step, state } = halfway(app);
    return [{ view: "microscope", kind: "decoder_self", layer: 0, heads: [0], step: state }, "The decoder also looks at what it has written itself, and only at that. In training it sees the whole translation at once, so what is still to come is masked: its score becomes −∞, and its share 0. At piece ", `${step + 1}, ${app.lastStep - step} later ${app.lastStep - step === 1 ? "place is" : "places are"} closed.`];
  }],
  ["Which piece comes next", async (app) => {
    const { step, state } = halfway(app);
    const { chosen } = app.meta.steps[step];
    return [{ view: "next", step: state }, `The decoder’s last vector is compared with the embedding of all ${thousands(app.meta.model.vocab_size)} pieces: a score for each, and a softmax makes them probabilities. Here `, said(shown(chosen)), ` got ${percent(chosen.probability)}. Click another to force it: everything after it is written anew.`];
  }],
  ["Again, and again", async (app) => [
    { view: "beam", step: null }, `That piece is read back in, and the next one asked for, until the end piece comes. Taking the likeliest every time may miss a better whole; the search keeps ${app.meta.beam?.width ?? "several"} attempts alive. That is all there is: press play, or type a sentence of your own.`,
  ]],
];
