// The beam tree: every hypothesis that the search kept for a while, and why the others went.

import { shown } from "../axes.js";
import { button, note, opening, slider, tick } from "../controls.js";
import { bdi, el, replace, svg } from "../dom.js";
import { fixed } from "../numbers.js";

const [WIDE, TALL, BOX, TOP] = [144, 34, 120, 34];
const LETTERS = 9;

export function createBeam(root, app) {
  let pruned = true;
  let pinned = null; // the node that was chosen; one that is pointed at is told meanwhile
  const width = slider("Beam width", { name: "beam", min: 1, max: 8, step: 1, value: app.state.beam ?? 1,
    change: (beam) => app.translate({ beam, step: null }) });
  const penalty = slider("Length penalty", { name: "penalty", min: 0, max: 2, step: 0.1, value: 0.6, show: (value) => String(Math.round(value * 100) / 100),
    change: (lengthPenalty) => app.translate({ lengthPenalty, step: null }) });
  const all = tick("show what was dropped", { name: "pruned", checked: pruned, change: (value) => { pruned = value; draw(); } });
  const tree = el("div", { class: "scroll tree", tabindex: -1 });
  const text = el("span", { "aria-live": "polite" });
  const go = button("Go on from here", () => {
    const path = pathTo(pinned, new Map(app.meta.beam.nodes.map((one) => [one.id, one])));
    app.translate({ prefix: path.map((one) => one.piece_id), step: null });
  }, { name: "from-node" });
  root.append(opening("Beam",
    "Columns are steps, boxes are pieces with the score of everything up to them; the coloured path won, grey ones were dropped.",
    "The best score is the best under this search and this penalty, not the best translation."),
  el("div", { class: "controls" }, width, penalty, all), tree, el("div", { class: "formula told" }, text, go));

  function tell(node) {
    go.disabled = !pinned || node !== pinned || app.store.offline || node.state === "finished";
    if (!node) return replace(text, "Point at a box, or walk the tree with the arrow keys; a click or Enter holds on to it.");
    return replace(text,
      el("b", {}, bdi(shown(node))), ` after step ${node.step + 1}: log probability ${fixed(node.log_probability, 3)}, score ${fixed(node.score, 3)}. `,
      node.state === "kept" ? "Kept." : node.state === "finished" ? "Finished." : `Dropped: ${node.reason}.`,
      node.state === "finished" && node.reason ? ` ${node.reason}.` : "");
  }

  function pin(node) {
    pinned = node;
    for (const box of tree.querySelectorAll(".node")) {
      const own = Number(box.dataset.id) === node?.id;
      box.classList.toggle("pinned", own);
      box.setAttribute("aria-pressed", String(own));
    }
    tell(node);
  }

  // Choose a node: it is told until another is chosen, and one of the winner's is also where the page now stands.
  function choose(node) {
    pin(node);
    if (app.meta.beam.best.includes(node.id)) app.set({ step: node.step >= app.lastStep ? null : node.step });
  }

  function draw() {
    const { beam } = app.meta;
    width.input.disabled = penalty.input.disabled = app.store.offline;
    const [wentOn, before] = [document.activeElement === go, pinned];
    pin(null);
    if (!beam) return replace(tree, note("This translation was given, not searched for: there is no tree."));
    width.show(beam.width);
    penalty.show(beam.length_penalty);
    replace(tree, drawTree(beam, pruned, { preview: tell, leave: () => tell(pinned), choose }));
    if (tree.querySelector(`[data-id="${before?.id}"]`) && beam.nodes.includes(before)) pin(before);
    if (wentOn) tree.querySelector(".node[tabindex='0']")?.focus({ preventScroll: true });
    return mark();
  }

  function mark() {
    const columns = tree.querySelectorAll("[data-step]");
    for (const column of columns) column.classList.toggle("now", app.state.step !== null && Number(column.dataset.step) === app.step);
    if (app.state.step === null) return;
    const left = app.step * WIDE;
    if (left < tree.scrollLeft || left + WIDE > tree.scrollLeft + tree.clientWidth) tree.scrollLeft = left - tree.clientWidth / 2;
  }

  return {
    update(changed) {
      if (changed.has("meta")) draw();
      else if (changed.has("step")) mark();
      if (app.error && app.meta.beam) {
        width.show(app.meta.beam.width);
        penalty.show(app.meta.beam.length_penalty);
      }
    },
  };
}

function pathTo(node, byId) {
  const path = [];
  for (let at = node; at; at = byId.get(at.parent)) path.unshift(at);
  return path;
}

const RANK = { kept: 0, finished: 1, pruned: 2 };

// The winner on top, then by what became of them, then by score.
function layout(nodes, best) {
  const columns = [];
  for (const node of nodes) (columns[node.step] ??= []).push(node);
  const places = new Map();
  columns.forEach((column, step) => {
    column.sort((a, b) => Number(best.has(b.id)) - Number(best.has(a.id)) || RANK[a.state] - RANK[b.state] || b.score - a.score);
    column.forEach((node, row) => places.set(node.id, { x: step * WIDE + 8, y: TOP + row * TALL }));
  });
  return { columns, places };
}

function drawTree(beam, pruned, hands) {
  const best = new Set(beam.best);
  const nodes = beam.nodes.filter((node) => pruned || node.state !== "pruned" || best.has(node.id));
  const { columns, places } = layout(nodes, best);
  const height = TOP + Math.max(...columns.map((column) => column?.length ?? 0)) * TALL + 8;
  const edges = nodes.filter((node) => places.has(node.parent)).map((node) => {
    const [from, to] = [places.get(node.parent), places.get(node.id)];
    const [x, y] = [from.x + BOX, from.y + 13];
    return svg("path", { class: `edge ${node.state}${best.has(node.id) ? " best" : ""}`, d: `M${x},${y} C${x + 14},${y} ${to.x - 14},${to.y + 13} ${to.x},${to.y + 13}` });
  });
  const heads = columns.map((_, step) => svg("text", { class: "step", x: step * WIDE + 8, y: 18, data: { step }, text: String(step + 1) }));
  const boxes = new Map(nodes.map((node) => [node.id, box(node, places.get(node.id), best.has(node.id), hands)]));
  const drawing = svg("svg", { class: "beam", width: columns.length * WIDE + 8, height, role: "group", "aria-label": `Beam of width ${beam.width}` },
    ...heads, ...edges.sort((a, b) => Number(a.classList.contains("best")) - Number(b.classList.contains("best"))), ...boxes.values());
  walk(drawing, boxes, columns, nodes, hands);
  return drawing;
}

function box(node, { x, y }, best, { preview, leave, choose }) {
  const text = Array.from(shown(node));
  const short = text.length > LETTERS ? `${text.slice(0, LETTERS - 1).join("")}…` : text.join("");
  return svg("g", {
    class: `node ${node.state}${best ? " best" : ""}`, transform: `translate(${x},${y})`, tabindex: -1, role: "button", "aria-pressed": "false", data: { id: node.id },
    "aria-label": `${shown(node)}, score ${fixed(node.score, 2)}, ${node.state}${node.reason ? `, ${node.reason}` : ""}`,
    on: { pointerenter: () => preview(node), focus: () => preview(node), pointerleave: leave, blur: leave, click: () => choose(node) },
  },
  svg("rect", { width: BOX, height: 26, rx: 6 }),
  svg("text", { class: "piece", x: 8, y: 17.5, text: short }),
  svg("text", { class: "score", x: BOX - 7, y: 17, "text-anchor": "end", text: fixed(node.score, 2) }));
}

// Left to the parent, right to the first child, up and down within the column; Enter and Space choose.
function walk(drawing, boxes, columns, nodes, { choose }) {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const start = boxes.get(columns[0]?.[0]?.id);
  if (start) start.setAttribute("tabindex", "0");
  drawing.addEventListener("keydown", (event) => {
    const node = byId.get(Number(event.target.closest?.(".node")?.dataset.id));
    const chosen = event.key === "Enter" || event.key === " ";
    if (!node || (!chosen && !event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    if (chosen) {
      choose(node);
      return;
    }
    const column = columns[node.step];
    const at = column.indexOf(node);
    const to = {
      ArrowLeft: () => byId.get(node.parent), ArrowRight: () => columns[node.step + 1]?.find((one) => one.parent === node.id),
      ArrowUp: () => column[at - 1], ArrowDown: () => column[at + 1],
    }[event.key]();
    if (!to) return;
    boxes.get(node.id).setAttribute("tabindex", "-1");
    boxes.get(to.id).setAttribute("tabindex", "0");
    boxes.get(to.id).focus();
  });
}
