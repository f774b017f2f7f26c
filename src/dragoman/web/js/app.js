// What is looked at, and who must know: one state, one trace, and listeners. Views read `app.state` and `app.meta`, and
// change things through `app.set` and `app.translate` alone.

import { fromHash, toHash } from "./permalink.js";
import { Refusal } from "./store.js";

export const DEFAULTS = {
  text: "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
  source: null, target: null, // the server's first
  sentence: 0, beam: 4, lengthPenalty: null, prefix: [], off: [], // what the translation was asked for
  view: "threads", step: null, // null: the whole translation
  kind: "cross", layer: null, heads: [0], mode: "mean", unit: "words", special: false, measure: "weight",
  query: 0, sort: "place", column: 0, lesson: null,
};

// A change of these asks for a new trace.
const ASKED = ["text", "source", "target", "sentence", "beam", "lengthPenalty", "prefix", "off"];

export function makeApp(store) {
  const listeners = new Set();
  const hovers = new Set();
  let running = 0;

  const app = {
    store, meta: null, models: [], error: "", needsKey: false, busy: false,
    state: { ...DEFAULTS, ...fromHash(location.hash) },

    onChange(listener) {
      listeners.add(listener);
    },

    // A word under the pointer, told to all: { side: "source" | "target", pieces: [...] } or null.
    onHover(listener) {
      hovers.add(listener);
    },

    hover(word) {
      for (const listener of hovers) listener(word);
    },

    set(patch) {
      const changed = new Set(Object.keys(patch).filter((key) => !same(app.state[key], patch[key])));
      Object.assign(app.state, patch);
      if (changed.size) tell(changed);
    },

    get lastStep() {
      return app.meta ? app.meta.target.pieces.length - 1 : 0;
    },

    // The target piece that is being written.
    get step() {
      return Math.min(app.state.step ?? app.lastStep, app.lastStep);
    },

    get request() {
      const { text, source, target, sentence, beam, lengthPenalty, prefix, off } = app.state;
      const request = { text, source, target, beam };
      if (sentence) request.sentence = sentence;
      if (lengthPenalty !== null) request.length_penalty = lengthPenalty;
      if (prefix.length) request.prefix = prefix;
      if (off.length) request.off = off;
      return request;
    },

    // Ask what can be translated here, and translate what the address says.
    async begin() {
      app.error = "";
      try {
        app.models = await store.models();
        app.needsKey = false;
        if (!app.models.length) throw new Refusal("No model is loaded here: start the server with one.");
      } catch (error) {
        app.error = error.message;
        app.needsKey = /\bkey\b/i.test(error.message);
        tell(new Set(["error"]));
        return;
      }
      const { source, target } = app.state;
      const known = app.models.find((model) => model.source === source && model.target === target) ?? app.models[0];
      await app.translate({ source: known.source, target: known.target, step: app.state.step });
    },

    // Ask for a translation, with some of what is asked changed. A later call overtakes an earlier one.
    async translate(patch = {}) {
      const mine = (running += 1);
      const changed = new Set(Object.keys(patch));
      Object.assign(app.state, patch);
      app.busy = true;
      app.error = "";
      tell(new Set(["busy", ...changed]));
      try {
        const meta = await store.trace(app.request);
        if (mine !== running) return false;
        app.meta = meta;
        settle(app, changed);
      } catch (error) {
        if (mine !== running) return false;
        if (!(error instanceof Refusal)) throw error;
        app.error = error.message;
      } finally {
        if (mine === running) {
          app.busy = false;
          tell(new Set(["busy", "error", ...(app.error ? [] : ["meta"]), ...changed]));
        }
      }
      return !app.error;
    },

    tensors(...names) {
      return store.tensors(app.meta, names);
    },

    has(name) {
      return Boolean(app.meta) && (name in app.meta.tensors || name in (app.meta.on_demand ?? {}));
    },

    address() {
      return `${location.href.split("#")[0]}${toHash(app.state, DEFAULTS)}`;
    },
  };

  function tell(changed) {
    if (app.meta && !app.error) history.replaceState(null, "", toHash(app.state, DEFAULTS));
    for (const listener of listeners) listener(changed);
  }

  return app;
}

// Keep what was chosen inside what the new trace has.
function settle(app, changed) {
  const { state, meta } = app;
  const asked = ASKED.some((key) => changed.has(key));
  if (asked && !changed.has("step")) state.step = null;
  if (state.step !== null) state.step = state.step >= app.lastStep ? null : state.step;
  state.query = Math.min(state.query, meta.source.pieces.length - 1);
  const layers = state.kind === "encoder_self" ? meta.model.encoder_layers : meta.model.decoder_layers;
  if (state.layer === null) state.layer = state.kind === "cross" ? meta.alignment_layer : sharpest(meta, state.kind);
  if (state.layer >= layers) state.layer = layers - 1;
  state.heads = state.heads.filter((head) => head < meta.model.heads);
  if (!state.heads.length) state.heads = [0];
}

// The layer whose heads look at the fewest things: where an alignment is most likely to be seen.
export function sharpest(meta, kind) {
  const layers = new Map();
  for (const head of meta.heads.filter((item) => item.kind === kind)) {
    layers.set(head.layer, (layers.get(head.layer) ?? 0) + head.entropy);
  }
  return [...layers].sort((a, b) => a[1] - b[1])[0]?.[0] ?? 0;
}

function same(a, b) {
  return a === b || (Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => item === b[i]));
}
