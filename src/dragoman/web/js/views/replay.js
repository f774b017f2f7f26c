// Training replay: the same sentence under the weights of every checkpoint that was kept.

import { cividis } from "../colour.js";
import { note, opening, slider } from "../controls.js";
import { bdi, el, inLanguage, replace, said } from "../dom.js";
import { matrix } from "../matrix.js";
import { fixed, share, thousands } from "../numbers.js";
import { asking } from "./asking.js";
import { cellSize, heatmap, wordNow } from "./heatmap.js";

export function createReplay(root, app) {
  let moments = [];
  let meta = null; // of the translation that these are moments of
  const when = slider("Checkpoint", { name: "checkpoint", min: 0, max: 0, step: 1, value: 0, show: (index) => (moments[index] ? `step ${thousands(moments[index].step)}` : ""), change: () => {} });
  when.input.addEventListener("input", () => show(Number(when.input.value)));
  const text = el("p", { class: "version-text" });
  const figures = el("p", { class: "fine" });
  const map = el("div", {});
  const readout = el("p", { class: "formula", "aria-live": "polite" });
  const answer = el("div", {}, el("div", { class: "controls" }, when), text, figures, map, readout);
  root.append(opening("Training",
    "The same sentence under earlier weights of this model: what it wrote then, and how its attention joined the words of the final translation.",
    "One sentence is no learning curve: others were learnt sooner or later."), answer);

  const load = asking(app, answer, async (asked) => {
    const { checkpoints } = await app.store.ask("replay", asked);
    return () => {
      [moments, meta] = [checkpoints, asked];
      when.input.max = String(Math.max(moments.length - 1, 0));
      when.input.disabled = moments.length < 2;
      when.show(moments.length - 1);
      show(moments.length - 1);
    };
  }, (problem) => {
    moments = [];
    for (const part of [text, figures, readout]) replace(part);
    replace(map, problem);
  });

  function show(index) {
    const moment = moments[index];
    if (!moment) return;
    const words = meta.source.words.map((word) => word.text);
    if (!words.length || !moment.words.length) {
      for (const part of [text, figures, readout]) replace(part);
      return replace(map, note("There are only special pieces here, and no words to join."));
    }
    const weights = matrix(moment.words.length, words.length, Float32Array.from(moment.matrix.flat()));
    const tell = (row, col) => replace(readout, said(moment.words[row]), " looked at ", said(words[col]), `: ${share(weights.data[row * words.length + col])}`);
    readout.textContent = "Point at a cell: a row is a word of the final translation, a column a source word.";
    replace(inLanguage(text, meta.model.target, moment.text), bdi(moment.text));
    figures.textContent = `at step ${thousands(moment.step)}; log probability of the final translation then: ${fixed(moment.log_probability, 2)}`;
    replace(map, heatmap({ title: `Attention at step ${thousands(moment.step)}`, rows: moment.words, cols: words, matrix: weights, top: 1, colour: cividis, tell, readout, size: cellSize(words.length, map.clientWidth) }));
    mark();
  }

  // The word that is being written has its row.
  function mark() {
    if (meta === app.meta) map.firstChild?.now?.({ row: wordNow(app), col: -1 });
  }

  return {
    update(changed) {
      if (changed.has("meta")) load();
      else if (changed.has("theme")) show(Number(when.input.value));
      else if (changed.has("step")) mark();
    },
  };
}
