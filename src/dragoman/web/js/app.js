// What is looked at, and who must know: one state, one trace, and listeners. Views read `app.state` and `app.meta`, and
// change things through `app.set` and `app.translate` alone.

import { place, ROLLOUTS } from "./axes.js";
import { fromHash, toHash } from "./permalink.js";
import { Refusal } from "./store.js";

export const DEFAULTS = {
  text: null, // the first sentence of the source language
  source: null, target: null, // the server's first
  sentence: 0, beam: null, lengthPenalty: null, prefix: [], off: [], // what the translation was asked for; null: the model's own
  view: "threads", step: null, // null: the whole translation
  kind: "cross", layer: null, heads: [0], mode: "mean", unit: "words", special: false, measure: "weight",
  query: null, sort: "place", column: 0, lesson: null,
};

// A change of these asks for a new trace.
const ASKED = ["text", "source", "target", "sentence", "beam", "lengthPenalty", "prefix", "off"];

// What is translated on a first visit, by source language.
const FIRST = {
  de: "Das Tier überquerte die Straße nicht, weil es zu müde war.",
  en: "The animal didn't cross the street because it was too tired.",
  es: "El animal no cruzó la calle porque estaba demasiado cansado.",
  fr: "L'animal n'a pas traversé la rue parce qu'il était trop fatigué.",
  it: "L'animale non ha attraversato la strada perché era troppo stanco.",
  nl: "Het dier stak de straat niet over omdat het te moe was.",
  pt: "O animal não atravessou a rua porque estava cansado demais.",
};
const ANYWHERE = "Anna, Paris, 1 2 3."; // in a language that we have no sentence of

export function firstSentence(source) {
  return FIRST[(source ?? "").split(/[-_]/)[0].toLowerCase()] ?? ANYWHERE;
}

const LATER_MS = 3000;

export function makeApp(store) {
  const listeners = new Set();
  const hovers = new Set();
  let running = 0;
  let pending = {}; // asked for, and not answered yet
  let late = null;

  const app = {
    store, meta: null, plain: null, models: [], error: "", needsKey: false, busy: false,
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
      return requestOf(app.state);
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
      const { source, target, text } = app.state;
      const known = app.models.find((model) => model.source === source && model.target === target) ?? app.models[0];
      app.set(filled({ source: known.source, target: known.target, text }));
      await app.translate({ step: app.state.step });
    },

    // Ask for a translation, with some of what is asked changed; a refusal leaves everything as it was. A later call
    // overtakes an earlier one, and asks for what that one changed, too.
    async translate(patch = {}) {
      const mine = (running += 1);
      const asked = (pending = { ...pending, ...filled(patch) });
      const news = ["busy", "error"];
      app.busy = true;
      app.error = "";
      tell(new Set(["busy"]));
      try {
        const request = requestOf({ ...app.state, ...asked });
        const answer = store.why ? { plain: await store.translate(request) } : { meta: await store.trace(request) };
        if (mine !== running) return false;
        Object.assign(app, answer);
        Object.assign(app.state, asked);
        if (app.meta) settle(app, new Set(Object.keys(asked)));
        news.push(...Object.keys(answer), ...Object.keys(asked));
      } catch (error) {
        if (mine !== running) return false;
        if (!(error instanceof Refusal)) throw error;
        app.error = error.message;
      } finally {
        if (mine === running) {
          pending = {};
          app.busy = false;
          tell(new Set(news));
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
      return `${location.href.split("#")[0]}${hash()}`;
    },
  };

  // With the sentence that nobody typed, and what a store has that knows one translation alone.
  function filled(patch) {
    const whole = { ...patch, ...store.asked };
    return whole.text === null ? { ...whole, text: firstSentence(whole.source ?? app.state.source) } : whole;
  }

  function hash() {
    return toHash(app.state, { ...DEFAULTS, text: firstSentence(app.state.source), ...store.asked });
  }

  // Browsers allow so many changes of the address in so much time: what they refuse, by an error or without a word, is
  // written later.
  function remember() {
    clearTimeout(late);
    const now = hash();
    const there = () => (location.hash || "#") === now;
    try {
      if (!there()) history.replaceState(null, "", now);
    } catch {
      // told apart below
    }
    if (!there()) late = setTimeout(remember, LATER_MS);
  }

  function tell(changed) {
    if ((app.meta ?? app.plain) !== null && !app.error && !app.busy) remember();
    for (const listener of listeners) listener(changed);
  }

  return app;
}

function requestOf({ text, source, target, sentence, beam, lengthPenalty, prefix, off }) {
  const request = { text, source, target };
  if (sentence) request.sentence = sentence;
  if (beam !== null) request.beam = beam;
  if (lengthPenalty !== null) request.length_penalty = lengthPenalty;
  if (prefix.length) request.prefix = prefix;
  if (off.length) request.off = off;
  return request;
}

// Keep what was chosen inside what the new trace has.
function settle(app, changed) {
  const { state, meta } = app;
  const asked = ASKED.some((key) => changed.has(key));
  if (asked && !changed.has("step")) state.step = null;
  if (state.step !== null) state.step = state.step >= app.lastStep ? null : state.step;
  if (state.query !== null) state.query = Math.min(state.query, meta.source.pieces.length - 1);
  if (!meta.heads.some((head) => head.kind === state.kind)) state.kind = "cross";
  const layers = state.kind === "encoder_self" ? meta.model.encoder_layers : meta.model.decoder_layers;
  if (!meta.heads.length) state.layer = null; // the next model that has attention chooses its own
  else if (state.layer === null) state.layer = state.kind === "cross" ? meta.alignment_layer : sharpest(meta, state.kind);
  if (state.layer !== null && state.layer >= layers) state.layer = layers - 1;
  state.heads = state.heads.filter((head) => head < meta.model.heads);
  if (!state.heads.length) state.heads = [0];
  if (!app.has(ROLLOUTS[state.kind]) && state.mode === "rollout") state.mode = "mean";
  if (!app.has(`${place(state.kind, state.layer)}.value_norm`)) state.measure = "weight";
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
