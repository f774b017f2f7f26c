// Threads (the home view): ink between the words, as wide and as dark as the weight.

import { attentionOf } from "../attention.js";
import { inManuscript, layersOf, place, ROLLOUTS } from "../axes.js";
import { headClass } from "../colour.js";
import { choice, note, opening, pick, tick } from "../controls.js";
import { announce, bdi, el, replace, roving, svg } from "../dom.js";
import { latest } from "../latest.js";
import { share } from "../numbers.js";
import { kindChoice, offer } from "./kinds.js";

const TOLD = 3; // partners of a word that are read out
const THINNEST = 0.02; // a thread of less weight is not drawn, unless all are that thin
const MOST_THREADS = 2400;
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

export function createThreads(root, app) {
  const controls = el("div", { class: "controls" });
  const cloth = el("div", { class: "cloth" });
  const legend = el("p", { class: "fine", id: "threads-note" });
  root.append(opening("Threads",
    "Each thread joins a piece being written to a piece it looked at; its width and darkness are the attention weight.",
    "A thick thread shows where a head looked, not that the word caused the choice: What matters tests that."),
  controls, cloth, legend);
  const bar = createBar(controls, app);
  let drawn = null;
  let pin = null; // the word that stays lit: { name: "keys" | "queries", piece }

  // A click leaves a word lit until it is clicked again, and shows it to the other views.
  function press(kind, name, pieces) {
    const again = isPinned(pin, name, pieces);
    app.set(clicked(app, kind, name, again ? null : pieces[0]));
    pin = again ? pinFrom(app.state) : { name, piece: pieces[0] };
    drawn?.step(app, pin);
  }

  const draw = latest(async () => {
    const wanted = { ...app.state };
    const attention = await attentionOf(app, wanted);
    return () => {
      drawn = null;
      if (!attention.rows.length || !attention.cols.length) {
        replace(cloth, note("There are only special pieces here: tick the box above to see them."));
        return;
      }
      drawn = weave(cloth, attention, { app, kind: wanted.kind, press });
      legend.textContent = noteFor(wanted, drawn);
      drawn.step(app, pin);
    };
  }, (problem) => {
    drawn = null;
    replace(cloth, problem);
  });

  app.onHover((word) => drawn?.manuscript(word));
  const CHOICES = ["meta", "kind", "layer", "heads", "mode", "unit", "special", "measure"];
  return {
    update(changed) {
      bar.show();
      if (["meta", "kind", "step", "query"].some((name) => changed.has(name))) pin = pinFrom(app.state);
      if (CHOICES.some((name) => changed.has(name))) draw();
      else drawn?.step(app, pin);
    },
  };
}

const isPinned = (pin, name, pieces) => pin !== null && pin.name === name && pieces.includes(pin.piece);

// The piece being written, or else the source piece that is asked about.
function pinFrom({ kind, step, query }) {
  if (kind !== "encoder_self" && step !== null) return { name: "queries", piece: step };
  if (kind === "decoder_self" || query === null) return null;
  return { name: kind === "cross" ? "keys" : "queries", piece: query };
}

// What a click on a word changes, or one that takes it back (null).
function clicked(app, kind, name, piece) {
  if (kind === "encoder_self" || (kind === "cross" && name === "keys")) return { query: piece };
  return { step: piece === null || piece >= app.lastStep ? null : piece };
}

function createBar(controls, app) {
  const kind = kindChoice(app, "kind");
  const layer = pick("Layer", [], { name: "layer", value: 0, change: (value) => app.set({ layer: Number(value) }) });
  const mode = choice("Heads", [["mean", "mean"], ["heads", "chosen"], ["rollout", "rollout", "All layers followed through, residuals included"]],
    { name: "mode", value: app.state.mode, change: (value) => app.set({ mode: value }) });
  const swatches = el("div", { class: "swatches", role: "group", "aria-label": "Chosen heads" });
  const unit = choice("Show", [["words", "words"], ["pieces", "pieces"]],
    { name: "unit", value: app.state.unit, change: (value) => app.set({ unit: value }) });
  const measure = choice("Measure", [["weight", "weight"], ["norm", "weight × ‖v‖", "Weight times the length of the value that it lets through, as W_O hands it on"]],
    { name: "measure", value: app.state.measure, change: (value) => app.set({ measure: value }) });
  const special = tick("special pieces", { name: "special", checked: app.state.special, change: (value) => app.set({ special: value }),
    title: "When hidden, the other weights are scaled up to add up to one again" });
  controls.append(kind, layer, mode, swatches, unit, measure, special);

  function toggle(head, alone) {
    const { heads, mode: now } = app.state;
    const rest = heads.filter((other) => other !== head);
    if (now !== "heads" || alone) app.set({ mode: "heads", heads: [head] });
    else app.set({ heads: heads.includes(head) && rest.length ? rest : [...rest, head].sort((a, b) => a - b) });
  }

  return {
    show() {
      const { state, meta } = app;
      kind.show();
      const layers = layersOf(meta, state.kind);
      layer.show(state.layer, Array.from({ length: layers }, (_, index) => [index, String(index + 1)]));
      layer.querySelector("select").disabled = state.mode === "rollout";
      mode.show(state.mode);
      offer(mode, ["mean", "heads", ...(app.has(ROLLOUTS[state.kind]) ? ["rollout"] : [])]);
      unit.show(state.unit);
      measure.show(state.measure);
      offer(measure, ["weight", ...(app.has(`${place(state.kind, state.layer)}.value_norm`) ? ["norm"] : [])]);
      special.show(state.special);
      if (swatches.childElementCount !== meta.model.heads) {
        replace(swatches, ...Array.from({ length: meta.model.heads }, (_, head) => el("button", {
          type: "button", class: `swatch ${headClass(head)}`, data: { head }, "aria-label": `Head ${head + 1}`,
          title: `Head ${head + 1}; double click for this one alone`, text: String(head + 1),
          on: { click: () => toggle(head, false), dblclick: () => toggle(head, true) },
        })));
      }
      for (const swatch of swatches.children) {
        const on = state.mode === "heads" && state.heads.includes(Number(swatch.dataset.head));
        swatch.setAttribute("aria-pressed", String(on));
      }
    },
  };
}

function noteFor({ mode, heads, measure, special }, { hidden }) {
  return [
    mode === "heads" && heads.length > 1 && "Numbers are means of the chosen heads.",
    mode === "rollout" && "Rollout multiplies the mean weights of all layers, half of each step being the residual.",
    measure === "norm" && mode !== "rollout" && "Shares of weight × ‖v‖ are scaled to add up to one.",
    !special && "Special pieces are hidden, and the other weights scaled to add up to one.",
    hidden && `${hidden} thin threads are not drawn; hover over a word for its numbers.`,
  ].filter(Boolean).join(" ");
}

// Keys on the left, queries on the right (source and target, for cross-attention), and the threads between.
function weave(cloth, { rows, cols, layers }, { app, kind, press }) {
  const height = Math.max(rows.length, cols.length);
  const tall = height > 60 ? 20 : height > 26 ? 26 : 34;
  const offset = (count) => ((height - count) * tall) / 2;
  const at = (list, index) => offset(list.length) + (index + 0.5) * tall;
  const lines = threadsOf(layers, rows, cols);
  const kept = lines.slice(0, MOST_THREADS);
  const paths = kept.map(({ row, col, head, weight }) => svg("path", {
    class: head === null ? "thread" : `thread ${headClass(head)}`,
    d: `M0,${at(cols, col)} C45,${at(cols, col)} 55,${at(rows, row)} 100,${at(rows, row)}`,
    "stroke-width": (0.6 + 9 * weight).toFixed(2), "stroke-opacity": Math.min(0.12 + 0.88 * weight, 1).toFixed(3),
    "vector-effect": "non-scaling-stroke",
  }));
  const ink = svg("svg", {
    class: "ink", viewBox: `0 0 100 ${height * tall}`, preserveAspectRatio: "none", "aria-hidden": "true", css: { height: `${(height * tall) / 16}rem` },
  }, ...paths);
  const { source, target } = app.meta.request;
  const left = column("keys", cols, tall, offset(cols.length), kind === "decoder_self" ? target : source);
  const right = column("queries", rows, tall, offset(rows.length), kind === "encoder_self" ? source : target);
  replace(cloth, left, ink, right);
  cloth.dataset.size = tall < 26 ? "small" : tall < 34 ? "middle" : "large";
  return listen(cloth, { left, right, ink, paths, kept, rows, cols, layers, kind, app, press, hidden: lines.length - kept.length });
}

function threadsOf(layers, rows, cols) {
  const lines = [];
  const thinnest = Math.min(THINNEST, 0.75 / cols.length);
  for (const { head, matrix } of layers) {
    matrix.data.forEach((weight, index) => {
      if (weight >= thinnest) lines.push({ head, weight, row: Math.floor(index / cols.length), col: index % cols.length });
    });
  }
  return lines.sort((a, b) => b.weight - a.weight);
}

function column(name, units, tall, offset, lang) {
  return el("div", { class: `column ${name}`, lang, css: { "padding-top": `${offset / 16}rem` }, role: "group", "aria-label": name === "keys" ? "Looked at" : "Looking" },
    ...units.map((unit, index) => el("div", { class: "entry", css: { height: `${tall / 16}rem` } },
      el("button", { type: "button", class: unit.special ? "word special" : "word", data: { index }, tabindex: index ? -1 : 0 }, bdi(unit.text)),
      el("span", { class: "weight", "aria-hidden": "true" }))));
}

// Light a word and its partners; the numbers stand beside the partners.
function listen(cloth, woven) {
  const { left, right, ink, paths, kept, rows, cols, layers, kind, app, press } = woven;
  const sides = { keys: [...left.children], queries: [...right.children] };
  let pinned = null; // [side, index]

  // Of a word and one on the other side: a number a head.
  function weightsOf(side, index, other) {
    const [row, col] = side === "keys" ? [other, index] : [index, other];
    return layers.map(({ matrix }) => matrix.data[row * cols.length + col]);
  }

  function light(side, index) {
    const on = side !== null;
    ink.classList.toggle("hushed", on);
    paths.forEach((path, i) => path.classList.toggle("lit", on && kept[i][side === "keys" ? "col" : "row"] === index));
    for (const name of ["keys", "queries"]) {
      sides[name].forEach((entry, i) => {
        const self = on && name === side && i === index;
        const weights = on && name !== side ? weightsOf(side, index, i) : [];
        entry.classList.toggle("chosen", self);
        entry.classList.toggle("partner", Math.max(0, ...weights) >= 0.1);
        entry.lastChild.textContent = weights.length ? share(mean(weights)) : "";
        entry.lastChild.dataset.value = weights.length ? String(mean(weights)) : "";
      });
    }
  }

  // What the numbers beside the words say, for who cannot see them.
  function told(side, index) {
    const [own, others] = side === "keys" ? [cols, rows] : [rows, cols];
    const partners = others.map((other, i) => ({ text: other.text, weight: mean(weightsOf(side, index, i)) }));
    const most = partners.sort((a, b) => b.weight - a.weight).slice(0, TOLD).map(({ text, weight }) => `${text} ${share(weight)}`);
    return `${own[index].text} ${side === "keys" ? "is looked at by" : "looks at"} ${most.join(", ")}`;
  }

  const rest = () => (pinned ? light(...pinned) : light(null));
  for (const name of ["keys", "queries"]) {
    const units = name === "keys" ? cols : rows;
    const there = (index) => inManuscript(kind, name === "keys" ? "cols" : "rows", units[index].pieces);
    sides[name].forEach((entry, index) => {
      const word = entry.firstChild;
      const enter = () => { light(name, index); app.hover(there(index)); };
      const leave = () => { app.hover(null); rest(); };
      for (const [event, act] of [["pointerenter", enter], ["focus", enter], ["pointerleave", leave], ["blur", leave]]) word.addEventListener(event, act);
      word.addEventListener("focus", () => announce(told(name, index)));
      word.addEventListener("click", () => press(kind, name, units[index].pieces));
    });
    roving(name === "keys" ? left : right, ".word", { back: ["ArrowUp"], on: ["ArrowDown"] });
  }
  cloth.onkeydown = (event) => {
    const other = event.key === "ArrowLeft" ? left : event.key === "ArrowRight" ? right : null;
    if (!other || !event.target.closest(".word") || other.contains(event.target)) return;
    event.preventDefault();
    other.querySelector(".word[tabindex='0']")?.focus();
  };

  return {
    hidden: woven.hidden,
    // What is not written yet has no threads; the piece being written keeps its own lit, or another that was clicked.
    step({ step }, pin) {
      const written = (unit) => kind === "encoder_self" || unit.pieces[0] <= step;
      paths.forEach((path, i) => path.classList.toggle("future", !written(rows[kept[i].row]) || (kind === "decoder_self" && !written(cols[kept[i].col]))));
      sides.queries.forEach((entry, i) => entry.classList.toggle("future", !written(rows[i])));
      pinned = null;
      for (const name of ["keys", "queries"]) {
        (name === "keys" ? cols : rows).forEach(({ pieces }, index) => {
          const stays = isPinned(pin, name, pieces);
          if (stays) pinned = [name, index];
          sides[name][index].firstChild.setAttribute("aria-pressed", String(stays));
        });
      }
      rest();
    },
    manuscript(word) {
      if (!word) return rest();
      for (const name of ["queries", "keys"]) {
        const units = name === "keys" ? cols : rows;
        const found = units.findIndex((unit) => {
          const there = inManuscript(kind, name === "keys" ? "cols" : "rows", unit.pieces);
          return there.side === word.side && there.pieces.some((piece) => word.pieces.includes(piece));
        });
        if (found >= 0) return light(name, found);
      }
      return rest();
    },
  };
}
