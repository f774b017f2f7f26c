// The desk beside the manuscript: one view open at a time, tabs above it.

import { el, focusOne, roving } from "./dom.js";
import { createBeam } from "./views/beam.js";
import { createMap } from "./views/map.js";
import { createMatters } from "./views/matters.js";
import { createMicroscope } from "./views/microscope.js";
import { createNext } from "./views/next.js";
import { createPositions } from "./views/positions.js";
import { createReplay } from "./views/replay.js";
import { createThreads } from "./views/threads.js";
import { createWhatIf } from "./views/whatif.js";

const looks = (app) => app.meta.heads.length > 0;
const hasQueries = (app) => Object.keys(app.meta.tensors).some((name) => name.endsWith(".query"));

// [name, title, create, when the model at hand has it]
const VIEWS = [
  ["threads", "Threads", createThreads, looks],
  ["map", "Map", createMap, looks],
  ["microscope", "Arithmetic", createMicroscope, hasQueries],
  ["next", "Next piece", createNext, () => true],
  ["beam", "Beam", createBeam, () => true],
  ["matters", "What matters", createMatters, () => true],
  ["whatif", "What if", createWhatIf, () => true],
  ["positions", "Positions", createPositions, (app) => app.has("source.position")],
  ["replay", "Training", createReplay, (app) => app.meta.model.checkpoints?.length > 0],
];

export function createDesk(root, app) {
  const made = new Map();
  const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
  const panels = el("div", { class: "panels" });
  root.append(tabs, panels);
  const settle = roving(tabs, "[role=tab]:not([hidden])");

  for (const [name, title] of VIEWS) {
    tabs.append(el("button", {
      type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `view-${name}`, data: { view: name }, text: title,
      on: { click: () => app.set({ view: name }) },
    }));
    panels.append(el("section", {
      class: "view", role: "tabpanel", id: `view-${name}`, "aria-labelledby": `tab-${name}`, tabindex: -1, hidden: true,
    }));
  }
  tabs.addEventListener("focusin", (event) => {
    if (event.target.dataset.view && app.meta) app.set({ view: event.target.dataset.view });
  });

  function open() {
    const there = VIEWS.filter(([, , , available]) => available(app)).map(([name]) => name);
    return there.includes(app.state.view) ? app.state.view : there[0];
  }

  function show(changed) {
    if (!app.meta) return;
    const current = open();
    for (const [name, , create, available] of VIEWS) {
      const tab = tabs.querySelector(`[data-view=${name}]`);
      const panel = panels.querySelector(`#view-${name}`);
      tab.hidden = !available(app);
      tab.setAttribute("aria-selected", String(name === current));
      panel.hidden = name !== current;
      if (name !== current) continue;
      if (!made.has(name)) made.set(name, { view: create(panel, app), stale: true });
      const entry = made.get(name);
      entry.view.update(entry.stale ? new Set(["meta", ...changed]) : changed);
      entry.stale = false;
      if (changed.has("view")) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    for (const [name, entry] of made) if (name !== current) entry.stale = true;
    focusOne([...tabs.children], tabs.querySelector(`[data-view=${current}]`));
    settle();
  }

  app.onChange((changed) => {
    root.classList.toggle("busy", app.busy);
    show(changed);
  });

  return {
    get panel() {
      return panels.querySelector(`#view-${open()}`);
    },
    get name() {
      return open();
    },
    focus() {
      panels.querySelector(`#view-${open()}`).focus();
    },
  };
}
