// Which attention is looked at: one bar for all views that ask.

import { KINDS, layersOf } from "../axes.js";
import { choice } from "../controls.js";

// A recurrent network attends from target to source alone.
export function kindsOf(meta) {
  return Object.keys(KINDS).filter((kind) => meta.heads.some((head) => head.kind === kind));
}

// A choice among the kinds that the trace has; with one there is nothing to choose.
export function kindChoice(app, name) {
  const bar = choice("Attention", Object.entries(KINDS), { name, value: app.state.kind, change: (kind) => app.set({
    kind, layer: Math.min(app.state.layer, layersOf(app.meta, kind) - 1),
  }) });
  const check = bar.show;
  bar.show = () => {
    check(app.state.kind);
    offer(bar, kindsOf(app.meta));
  };
  return bar;
}

// Leave only some options of a choice to choose from.
export function offer(bar, options) {
  for (const segment of bar.querySelectorAll(".segment")) segment.hidden = !options.includes(segment.dataset.option);
  bar.hidden = options.length < 2;
}
