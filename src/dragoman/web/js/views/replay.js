// Training replay: the same sentence under the weights of every checkpoint that was kept.

import { cividis } from "../colour.js";
import { opening, slider } from "../controls.js";
import { bdi, el, replace } from "../dom.js";
import { latest } from "../latest.js";
import { matrix } from "../matrix.js";
import { fixed, share, thousands } from "../numbers.js";
import { cellSize, heatmap } from "./heatmap.js";

export function createReplay(root, app) {
  let moments = [];
  const when = slider("Checkpoint", { name: "checkpoint", min: 0, max: 0, step: 1, value: 0, show: (index) => (moments[index] ? `step ${thousands(moments[index].step)}` : ""), change: () => {} });
  when.input.addEventListener("input", () => show(Number(when.input.value)));
  const text = el("p", { class: "version-text", dir: "auto" });
  const figures = el("p", { class: "fine" });
  const map = el("div", {});
  const readout = el("p", { class: "formula" });
  root.append(opening("Training",
    "The same sentence under earlier weights of this model: what it wrote then, and how its attention joined the words of the final translation.",
    "One sentence is no learning curve: others were learnt sooner or later."),
  el("div", { class: "controls" }, when), text, figures, map, readout);

  const load = latest(async () => {
    const { checkpoints } = await app.store.ask("replay", app.meta);
    return () => {
      moments = checkpoints;
      when.input.max = String(Math.max(moments.length - 1, 0));
      when.input.disabled = moments.length < 2;
      when.show(moments.length - 1);
      show(moments.length - 1);
    };
  }, (problem) => replace(map, problem));

  function show(index) {
    const moment = moments[index];
    if (!moment) return;
    const words = app.meta.source.words.map((word) => word.text);
    const weights = matrix(moment.words.length, words.length, Float32Array.from(moment.matrix.flat()));
    const tell = (row, col) => replace(readout, el("q", {}, bdi(moment.words[row])), " looked at ", el("q", {}, bdi(words[col])), `: ${share(weights.data[row * words.length + col])}`);
    readout.textContent = "Point at a cell: a row is a word of the final translation, a column a source word.";
    replace(text, bdi(moment.text));
    figures.textContent = `at step ${thousands(moment.step)}; log probability of the final translation then: ${fixed(moment.log_probability, 2)}`;
    replace(map, heatmap({ title: `Attention at step ${thousands(moment.step)}`, rows: moment.words, cols: words, matrix: weights, top: 1, colour: cividis, tell, size: cellSize(words.length, map.clientWidth) }));
  }

  return {
    update(changed) {
      if (changed.has("meta")) load();
      else if (changed.has("theme")) show(Number(when.input.value));
    },
  };
}
