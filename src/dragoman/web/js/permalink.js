// What a person looks at, in the address: after the #, so that the text never reaches a server's log.

// Name in the address -> [name in the state, how it is read].
const text = (value) => value;
const count = (value) => (/^\d{1,4}$/.test(value) ? Number(value) : undefined);
const number = (value) => (value !== "" && Number.isFinite(Number(value)) ? Number(value) : undefined);
const list = (value) => (/^\d+(\.\d+)*$/.test(value) ? value.split(".").map(Number) : undefined);
const words = (value) => (value ? value.split(",").filter((item) => /^[a-z_]+\.\d+\.[a-z_]+\.\d+$/.test(item)) : undefined);
const flag = (value) => value === "1";
const among = (...names) => (value) => (names.includes(value) ? value : undefined);

const FIELDS = {
  text: ["text", text],
  from: ["source", text],
  to: ["target", text],
  sentence: ["sentence", count],
  beam: ["beam", count],
  penalty: ["lengthPenalty", number],
  prefix: ["prefix", list],
  off: ["off", words],
  view: ["view", text],
  step: ["step", count],
  kind: ["kind", among("cross", "encoder_self", "decoder_self")],
  layer: ["layer", count],
  heads: ["heads", list],
  mode: ["mode", among("mean", "heads", "rollout")],
  unit: ["unit", among("pieces", "words")],
  special: ["special", flag],
  measure: ["measure", among("weight", "norm")],
  query: ["query", count],
  sort: ["sort", among("place", "entropy", "diagonality", "effect")],
  column: ["column", count],
  lesson: ["lesson", count],
};

function written(value) {
  if (value === true) return "1";
  if (value === false) return "0";
  if (Array.isArray(value)) return value.join(typeof value[0] === "string" ? "," : ".");
  return String(value);
}

// State -> "#view=beam&step=3": only what differs from the defaults.
export function toHash(state, defaults) {
  const found = new URLSearchParams();
  for (const [name, [key]] of Object.entries(FIELDS)) {
    const value = state[key];
    if (value === null || value === undefined || (Array.isArray(value) && !value.length)) continue;
    if (JSON.stringify(value) !== JSON.stringify(defaults[key])) found.set(name, written(value));
  }
  return found.size ? `#${found}` : "#";
}

// The other way; what cannot be read is left at its default.
export function fromHash(hash) {
  const state = {};
  for (const [name, value] of new URLSearchParams(hash.replace(/^#/, ""))) {
    if (!(name in FIELDS)) continue;
    const [key, read] = FIELDS[name];
    const understood = read(value);
    if (understood !== undefined) state[key] = understood;
  }
  return state;
}
