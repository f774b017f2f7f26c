// The model map: every head of every layer as a small picture.

import { place } from "../axes.js";
import { drawHeat } from "../canvas.js";
import { cividis } from "../colour.js";
import { choice, note, opening } from "../controls.js";
import { el, replace, roving } from "../dom.js";
import { headOf } from "../matrix.js";
import { fixed } from "../numbers.js";
import { asking } from "./asking.js";
import { kindChoice, offer } from "./kinds.js";

const ORDERS = [["place", "layer and head"], ["entropy", "most focused first"], ["diagonality", "most diagonal first"], ["effect", "most missed first", "Measured: how much the translation's log probability falls when the head is switched off"]];

// A recurrent network has no head that could be switched off.
const ordersOf = ({ model }) => ORDERS.map(([order]) => order).filter((order) => order !== "effect" || model.architecture !== "recurrent");
const orderNow = ({ meta, state }) => (ordersOf(meta).includes(state.sort) ? state.sort : "place");

export function createMap(root, app) {
  const kind = kindChoice(app, "map-kind");
  const sort = choice("Order", ORDERS, { name: "sort", value: app.state.sort, change: (value) => app.set({ sort: value }) });
  const grid = el("div", { class: "map", role: "group", "aria-label": "Heads" });
  root.append(opening("Model map",
    "Every head at once: in each picture a row is a piece that looks, a column a piece that is looked at, brighter is more.",
    "Pictures that look alike need not do the same work: the values they carry are not shown."),
  el("div", { class: "controls" }, kind, sort), grid,
  el("p", { class: "fine" }, "Brightness is the square root of the weight, so that small weights show. The figure is the entropy: 0 bits looks at one piece only. Diagonality is the correlation of the place that looks and the place looked at. Missed: the change in the translation’s log probability when the head is switched off. A click opens the head: cross-attention as threads, self-attention as arithmetic."));
  const settle = roving(grid, ".head");
  let shown = null; // what the pictures are being filled for

  const draw = asking(app, grid, async (meta) => {
    const asked = { meta, kind: app.state.kind, order: orderNow(app) };
    const measured = asked.order === "effect" ? (await app.store.ask("effects", meta)).heads : [];
    const effects = new Map(measured.map((head) => [head.name, head.effect]));
    return () => show({ ...asked, heads: sorted(headsOf(asked, effects), asked.order) });
  });

  function show(asked) {
    const { meta, heads, order } = (shown = asked);
    const cells = heads.map((head) => cell(head, app));
    grid.classList.toggle("ranked", order !== "place");
    grid.style.setProperty("--heads", meta.model.heads);
    delete grid.dataset.drawn;
    if (!cells.length) {
      replace(grid, note("This model has no such heads."));
      return;
    }
    replace(grid, ...(order === "place" ? withLayers(cells, heads) : cells));
    settle();
    mark();
    fill(asked, cells);
  }

  // A layer at a time, in the order in which they are seen first.
  async function fill(asked, cells) {
    const { meta, kind: now, heads } = asked;
    for (const layer of new Set(heads.map((head) => head.layer))) {
      const name = `${place(now, layer)}.weights`;
      let weights;
      try {
        weights = (await app.store.tensors(meta, [name])).get(name);
      } catch (error) {
        if (asked === shown) replace(grid, note(error.message));
        return;
      }
      if (asked !== shown || !weights) return;
      heads.forEach((head, index) => {
        if (head.layer === layer) drawHeat(cells[index].querySelector("canvas"), headOf(weights, head.head), { colour: (weight) => cividis(Math.sqrt(weight)) });
      });
      grid.dataset.drawn = String(grid.querySelectorAll("canvas[width]").length);
    }
  }

  // The row of the piece that is being written, in every picture at once.
  function mark() {
    if (shown?.meta !== app.meta) return;
    grid.classList.toggle("stepped", app.state.step !== null && shown.kind !== "encoder_self");
    grid.style.setProperty("--row", app.step);
    grid.style.setProperty("--rows", app.lastStep + 1);
  }

  return {
    update(changed) {
      kind.show();
      sort.show(orderNow(app));
      offer(sort, ordersOf(app.meta));
      if (["meta", "kind", "sort", "theme"].some((name) => changed.has(name))) draw();
      else if (changed.has("step")) mark();
    },
  };
}

function headsOf({ meta, kind }, effects) {
  return meta.heads.filter((head) => head.kind === kind).map((head) => ({ ...head, effect: effects.get(head.name) }));
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
  el("span", { class: "thumb" }, el("canvas", {})),
  el("span", { class: "caption" }, el("b", { text: `${head.layer + 1}·${head.head + 1}` }), el("span", { text: head.effect === undefined ? `${fixed(head.entropy, 1)} bit` : `−${fixed(head.effect, 3)}`.replace("−−", "+") })),
  el("span", { class: "label", text: head.label ?? "" }));
}
