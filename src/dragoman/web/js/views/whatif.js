// What if: heads switched off, words deleted or swapped; both translations side by side.

import { KINDS, place } from "../axes.js";
import { button, note, opening } from "../controls.js";
import { bdi, el, inLanguage, replace, roving } from "../dom.js";
import { fixed } from "../numbers.js";
import { asking } from "./asking.js";
import { kindsOf } from "./kinds.js";

export function createWhatIf(root, app) {
  let off = new Set();
  let words = []; // the words as they are to be, null where one is left out
  const wordRow = el("div", { class: "edit", role: "group", "aria-label": "Source words" });
  const headGrid = el("div", { class: "switches" });
  const heads = el("section", {}, el("h3", { text: "Heads" }), headGrid);
  const result = el("div", { class: "compare", "aria-live": "polite" });
  const actions = el("div", { class: "row" });
  root.append(opening("What if",
    "Change the sentence, or switch heads off, and compare what the model writes then.",
    "That a head can be missed here does not make it useless: others may do its work, and other sentences may need it."),
  el("h3", { text: "Words" }), el("p", { class: "fine", text: "× leaves a word out; type to put another in its place." }), wordRow,
  heads, actions, result);

  // What is changed: one sentence and its heads. All else stays as it was asked for, pieces that were given among it.
  const changes = () => ({ text: newText(), sentence: 0, off: [...off] });
  const run = asking(app, result, async (meta) => {
    const { target_ids: written, ...request } = meta.request;
    const changed = { ...request, ...changes() };
    const answer = await app.store.ask("compare", meta, { changed });
    return () => replace(result, ...sides(answer, meta, changed.text));
  });

  // The text with its words changed in place; what stood between words stays, but for one space at a gap.
  function newText() {
    const characters = Array.from(app.meta.source.text);
    let [text, end] = ["", 0];
    app.meta.source.words.forEach((word, index) => {
      const between = characters.slice(end, word.start).join("");
      const now = words[index];
      text += now === null || now === "" ? (text ? between.trimEnd() : "") : between + now;
      end = word.end;
    });
    return (text + characters.slice(end).join("")).trim();
  }

  const asked = () => app.meta.request.off ?? [];
  function reset() {
    off = new Set(asked());
    words = app.meta.source.words.map((word) => word.text);
    replace(inLanguage(wordRow, app.meta.model.source, app.meta.source.text), ...words.map((word, index) => wordBox(word, index, (now) => { words[index] = now; refresh(); })));
    // A recurrent network's attention is all that it knows of the source: it has no head to spare.
    heads.hidden = app.meta.model.architecture === "recurrent";
    replace(headGrid, ...kindsOf(app.meta).map((kind) => switches(kind, app.meta, off, refresh)));
    for (const block of headGrid.children) roving(block, ".switch")();
    replace(result);
    refresh();
  }

  const compare = button("Compare", () => run(), { kind: "main", name: "compare" });
  const take = button("Look inside the changed one", () => app.translate({ ...changes(), step: null }), { name: "take" });
  const clear = button("Undo changes", reset, { name: "reset" });
  function refresh() {
    const same = newText() === app.meta.source.text && [...off].sort().join() === [...asked()].sort().join();
    compare.disabled = take.disabled = app.store.offline || same || !newText();
    clear.disabled = same;
  }
  replace(actions, compare, take, clear, app.store.offline && note("Comparing needs the server: this page was saved as one file."));

  return {
    update(changed) {
      if (changed.has("meta")) reset();
    },
  };
}

function wordBox(word, index, change) {
  const input = el("input", { type: "text", dir: "auto", value: word, "aria-label": `Word ${index + 1}`, size: Math.max(2, Array.from(word).length), data: { index } });
  const drop = button("×", () => {
    const gone = !box.classList.toggle("gone");
    drop.setAttribute("aria-pressed", String(!gone));
    input.disabled = !gone;
    change(gone ? input.value.trim() : null);
  }, { kind: "drop", "aria-label": `Leave out ${word}`, "aria-pressed": "false" });
  const box = el("span", { class: "wordbox" }, input, drop);
  input.addEventListener("input", () => {
    input.size = Math.max(2, Array.from(input.value).length);
    box.classList.toggle("swapped", input.value.trim() !== word);
    change(input.value.trim());
  });
  return box;
}

function switches(kind, meta, off, changed) {
  const heads = meta.heads.filter((head) => head.kind === kind);
  const layers = [...new Set(heads.map((head) => head.layer))];
  const rows = layers.map((layer) => el("div", { class: "switch-row" }, el("span", { class: "layer", text: String(layer + 1) }),
    ...heads.filter((head) => head.layer === layer).map((head) => {
      const name = `${place(kind, layer)}.${head.head}`;
      const one = button(String(head.head + 1), () => {
        if (!off.delete(name)) off.add(name);
        one.setAttribute("aria-pressed", String(off.has(name)));
        changed();
      }, { kind: "switch", title: `${head.label || "head"}: click to switch off`, "aria-label": `Switch off layer ${layer + 1} head ${head.head + 1}`, "aria-pressed": String(off.has(name)), tabindex: -1 });
      one.dataset.name = name;
      return one;
    })));
  return el("div", { class: "switch-block", role: "group", "aria-label": KINDS[kind] }, el("h4", { text: KINDS[kind] }), ...rows);
}

function sides({ before, after, difference }, { source: { text: oldText }, model }, newText) {
  const stretch = (which, { kind, [which]: list }) => {
    const text = bdi(list.join(" "));
    return list.length ? [kind === "same" ? text : el(which === "before" ? "del" : "ins", {}, text), " "] : [];
  };
  const side = (title, which, version, text) => el("section", { class: `version ${which}` },
    el("h4", { text: title }),
    inLanguage(el("p", { class: "version-source", text }), model.source, text),
    inLanguage(el("p", { class: "version-text" }, ...difference.flatMap((change) => stretch(which, change))), model.target, version.text),
    el("p", { class: "fine", text: `score ${fixed(version.score, 3)} · log probability ${fixed(version.log_probability ?? NaN, 3)}` }));
  const same = before.text === after.text;
  return [side("As it is", "before", before, oldText), side("Changed", "after", after, newText),
    same && note("The translation is the same: this change was not needed for it, in this sentence.")];
}
