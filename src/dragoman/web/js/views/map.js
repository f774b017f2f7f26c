// The model map: every head of every layer as a small picture.

import { KINDS, layersOf, place } from "../axes.js";
import { drawHeat } from "../canvas.js";
import { cividis } from "../colour.js";
import { choice, note, opening } from "../controls.js";
import { el, replace, roving } from "../dom.js";
import { headOf } from "../matrix.js";
import { fixed } from "../numbers.js";

export function createMap(root, app) {
  const kind = choice("Attention", Object.entries(KINDS), { name: "map-kind", value: app.state.kind, change: (value) => app.set({
    kind: value, layer: Math.min(app.state.layer, layersOf(app.meta, value) - 1),
  }) });
  const sort = choice("Order", [["place", "layer and head"], ["entropy", "most focused first"], ["diagonality", "most diagonal first"], ["effect", "most missed first", "Measured: how much the translation's log probability falls when the head is switched off"]],
    { name: "sort", value: app.state.sort, change: (value) => app.set({ sort: value }) });
  const grid = el("div", { class: "map", role: "group", "aria-label": "Heads" });
  root.append(opening("Model map",
    "Every head at once: in each picture a row is a piece that looks, a column a piece that is looked at, brighter is more.",
    "Pictures that look alike need not do the same work: the values they carry are not shown."),
  el("div", { class: "controls" }, kind, sort), grid,
  el("p", { class: "fine" }, "Brightness is the square root of the weight, so that small weights show. The figure is the entropy: 0 bits looks at one piece only. Diagonality is the correlation of the place that looks and the place looked at. Missed: the change in the translation’s log probability when the head is switched off. A click opens the head: cross-attention as threads, self-attention as arithmetic."));
  const settle = roving(grid, ".head");
  let turn = 0;

  async function draw() {
    const mine = (turn += 1);
    let effects = new Map();
    if (app.state.sort === "effect") {
      try {
        effects = new Map((await app.store.ask("effects", app.meta)).heads.map((head) => [head.name, head.effect]));
      } catch (error) {
        if (mine === turn) replace(grid, note(error.message));
        return;
      }
      if (mine !== turn) return;
    }
    const known = app.meta.heads.filter((head) => head.kind === app.state.kind).map((head) => ({ ...head, effect: effects.get(head.name) }));
    const heads = sorted(known, app.state.sort);
    const cells = heads.map((head) => cell(head, app));
    grid.classList.toggle("ranked", app.state.sort !== "place");
    grid.style.setProperty("--heads", app.meta.model.heads);
    if (!cells.length) {
      replace(grid, note("This model has no such heads."));
      return;
    }
    const parts = app.state.sort === "place" ? withLayers(cells, heads) : cells;
    replace(grid, ...parts);
    settle();
    await fill(heads, cells, () => mine === turn);
  }

  // A layer at a time, in the order in which they are seen first.
  async function fill(heads, cells, current) {
    for (const layer of new Set(heads.map((head) => head.layer))) {
      const name = `${place(app.state.kind, layer)}.weights`;
      let weights;
      try {
        weights = (await app.tensors(name)).get(name);
      } catch (error) {
        if (current()) replace(grid, note(error.message));
        return;
      }
      if (!current() || !weights) return;
      heads.forEach((head, index) => {
        if (head.layer === layer) drawHeat(cells[index].querySelector("canvas"), headOf(weights, head.head), { colour: (weight) => cividis(Math.sqrt(weight)) });
      });
      grid.dataset.drawn = String(grid.querySelectorAll("canvas[width]").length);
    }
  }

  return {
    update(changed) {
      kind.show(app.state.kind);
      sort.show(app.state.sort);
      if (["meta", "kind", "sort", "theme"].some((name) => changed.has(name))) draw();
    },
  };
}

function sorted(heads, by) {
  const value = { place: (head) => head.layer * 1000 + head.head, entropy: (head) => head.entropy, diagonality: (head) => -head.diagonality, effect: (head) => -(head.effect ?? 0) }[by];
  return [...heads].sort((a, b) => value(a) - value(b));
}

function withLayers(cells, heads) {
  const parts = [];
  heads.forEach((head, index) => {
    if (head.head === 0) parts.push(el("span", { class: "layer", text: `Layer ${head.layer + 1}` }));
    parts.push(cells[index]);
  });
  return parts;
}

function cell(head, app) {
  const off = app.state.off.includes(`${place(head.kind, head.layer)}.${head.head}`);
  return el("button", {
    type: "button", class: off ? "head off" : "head", tabindex: -1, data: { layer: head.layer, head: head.head },
    "aria-label": `Layer ${head.layer + 1}, head ${head.head + 1}: entropy ${fixed(head.entropy, 2)}, diagonality ${fixed(head.diagonality, 2)}${head.label ? `, ${head.label}` : ""}`,
    on: { click: () => app.set({
      view: head.kind === "cross" || !app.has(`${place(head.kind, head.layer)}.query`) ? "threads" : "microscope",
      layer: head.layer, heads: [head.head], mode: "heads",
    }) },
  },
  el("canvas", {}),
  el("span", { class: "caption" }, el("b", { text: `${head.layer + 1}·${head.head + 1}` }), el("span", { text: head.effect === undefined ? `${fixed(head.entropy, 1)} bit` : `−${fixed(head.effect, 3)}`.replace("−−", "+") })),
  el("span", { class: "label", text: head.label ?? "" }));
}
