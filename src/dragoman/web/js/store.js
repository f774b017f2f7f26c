// Where traces come from: the server, or data that was put into this file. One interface over both:
//   offline, models(), trace(request), tensors(meta, names), ask(what, meta, more), offlineFile(meta)
//   asked: what the one translation of a saved page was asked for; empty where anything can be asked
//   why: what a server lacks that can only translate, if it does, known after models(); then translate(request) is left

import { readSafetensors, fromBase64 } from "./safetensors.js";

// What the server refused, in its own words.
export class Refusal extends Error {}

const OFFLINE = "This page was saved as one file: it shows one translation, and anything new needs `dragoman serve`.";

export function openStore() {
  return window.DRAGOMAN_TRACE ? new InlinedStore(window.DRAGOMAN_TRACE) : new ServerStore();
}

class TensorCache {
  constructor(load) {
    this.load = load;
    this.known = new WeakMap();
  }

  // -> Map of name -> tensor, asking only for what is not here yet.
  async get(meta, names) {
    if (!this.known.has(meta)) this.known.set(meta, new Map());
    const known = this.known.get(meta);
    const there = (name) => name in meta.tensors || name in (meta.on_demand ?? {});
    const missing = names.filter((name) => !known.has(name) && there(name));
    if (missing.length) {
      const loading = this.load(meta, missing);
      for (const name of missing) known.set(name, loading);
      loading.catch(() => missing.forEach((name) => known.delete(name)));
    }
    const found = new Map();
    for (const name of names) if (known.has(name)) found.set(name, (await known.get(name)).get(name));
    return found;
  }
}

class ServerStore {
  constructor() {
    this.offline = false;
    this.asked = {};
    this.why = "";
    this.key = ""; // of a server that serves only who has one; kept as long as the page is open
    this.cache = new TensorCache(async (meta, names) => {
      const answer = await this.post("/explain/tensors", { request: meta.request, names });
      return readSafetensors(await answer.arrayBuffer());
    });
  }

  post(path, body) {
    return this.send(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });
  }

  async send(path, { headers = {}, ...rest }) {
    let answer;
    try {
      answer = await fetch(path, { ...rest, headers: this.key ? { ...headers, Authorization: `Bearer ${this.key}` } : headers });
    } catch {
      throw new Refusal("The server does not answer. Is it still running?");
    }
    if (!answer.ok) throw new Refusal(await refusal(answer));
    return answer;
  }

  async models() {
    const { models, ready, why } = await (await this.send("/explain/models", {})).json();
    this.why = ready ? "" : why;
    return models;
  }

  // -> the text alone
  async translate({ text, source, target }) {
    const key = this.key ? { api_key: this.key } : {};
    const answer = await this.post("/translate", { q: text, source, target, format: "text", ...key });
    return (await answer.json()).translatedText;
  }

  async trace(request) {
    return (await this.post("/explain/trace", request)).json();
  }

  tensors(meta, names) {
    return this.cache.get(meta, names);
  }

  // importance, effects, compare, shuffle, replay
  async ask(what, meta, more = {}) {
    return (await this.post(`/explain/${what}`, { request: meta.request, ...more })).json();
  }

  async offlineFile(meta) {
    return (await this.post("/explain/page", { request: meta.request })).blob();
  }
}

async function refusal(answer) {
  try {
    return (await answer.json()).error ?? `The server answered ${answer.status}.`;
  } catch {
    return `The server answered ${answer.status}.`;
  }
}

class InlinedStore {
  constructor({ meta, tensors, ...answers }) {
    this.offline = true;
    this.why = "";
    this.meta = meta;
    const { text, source, target, sentence, beam, length_penalty: lengthPenalty, prefix, off } = meta.request;
    this.asked = { text, source, target, sentence, beam, lengthPenalty, prefix, off };
    this.answers = answers;
    this.all = tensors ? readSafetensors(fromBase64(tensors)) : new Map();
    meta.tensors = Object.fromEntries([...this.all].map(([name, tensor]) => [name, tensor.shape]));
    meta.on_demand = {};
  }

  async models() {
    const { request: { source, target }, model: { name } } = this.meta;
    return [{ name, source, target }];
  }

  async trace() {
    return this.meta;
  }

  async tensors(meta, names) {
    return new Map(names.filter((name) => this.all.has(name)).map((name) => [name, this.all.get(name)]));
  }

  async ask(what, meta, more) {
    if (this.answers[what] && !more) return this.answers[what];
    throw new Refusal(OFFLINE);
  }

  async offlineFile() {
    throw new Refusal("This page is that file.");
  }
}
