// Share: the address, the open view as a picture, one offline file, the trace; and the same from elsewhere.

import { slice } from "./axes.js";
import { copyFrom } from "./clipboard.js";
import { button } from "./controls.js";
import { el, replace } from "./dom.js";
import { pictureOf, pngOf } from "./picture.js";

export function createShare(tools, app, desk) {
  const problem = el("p", { class: "status error" });
  const commands = el("pre", { class: "commands" });
  const link = button("Copy the link", () => copyFrom(link, app.address()), { name: "share-link" });
  const drawn = (work) => async () => {
    problem.textContent = "";
    try {
      await work();
    } catch (error) {
      problem.textContent = error.message;
    }
  };
  const actions = [
    ["Link", "What you see, in an address. The sentence is part of it; it stays in your browser.", link],
    ["Picture", "The open view, as a drawing or an image.",
      button("SVG", drawn(() => save(new Blob([pictureOf(desk.panel).text], { type: "image/svg+xml" }), `dragoman-${desk.name}.svg`)), { name: "share-svg" }),
      button("PNG", drawn(async () => save(await pngOf(pictureOf(desk.panel)), `dragoman-${desk.name}.png`)), { name: "share-png" })],
    ["One file", "This page with its numbers inside: opens with no server and no network.",
      button("HTML", drawn(async () => save(await app.store.offlineFile(app.meta), "dragoman.html")), { name: "share-html" })],
    ["Trace", "The translation as data: pieces, probabilities, heads, the beam.",
      button("JSON", drawn(() => save(new Blob([JSON.stringify(app.meta, null, 1)], { type: "application/json" }), "dragoman-trace.json")), { name: "share-json" })],
  ];
  const close = button("×", () => dialog.close(), { kind: "quiet sign", name: "share-close", "aria-label": "Close" });
  const dialog = el("dialog", { class: "share", "aria-labelledby": "share-title" },
    el("div", { class: "lesson-head" }, el("h2", { id: "share-title", text: "Share" }), close),
    ...actions.map(([title, text, ...buttons]) => el("div", { class: "share-row" },
      el("div", {}, el("h3", { text: title }), el("p", { class: "fine", text })), el("div", { class: "row" }, ...buttons))),
    problem, el("h3", { text: "The same from elsewhere" }), commands);
  const open = button("Share", () => {
    problem.textContent = "";
    replace(commands, elsewhere(app.meta));
    for (const one of dialog.querySelectorAll("[data-name=share-html]")) one.disabled = app.store.offline;
    dialog.showModal();
  }, { name: "share" });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  tools.append(open);
  document.body.append(dialog);
  app.onChange(() => { open.disabled = !app.meta; });
}

// The page knows a model's folder by its name alone.
function elsewhere(meta) {
  const { name } = meta.model;
  const known = JSON.stringify(name);
  return `# ${name} is the model's folder: give its path if it is elsewhere
${commandOf(meta)}

from dragoman import explain
trace = explain.open_explainer(${known}).trace(
    ${argumentsOf(meta.request).join(",\n    ")},
)
trace.save("trace")`;
}

const quoted = (text) => (/^[\w.,:/+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

// What the translation was told to begin with is given as text here: a terminal has no pieces.
function commandOf({ request, model, target }) {
  const { prefix, sentence } = request;
  const options = [
    ["--model", model.name], ["--from", request.source], ["--to", request.target], ...(sentence ? [["--sentence", sentence + 1]] : []),
    ["--beam", request.beam], ["--length-penalty", request.length_penalty],
    ...(prefix.length ? [["--force", slice(target.text, 0, target.pieces[prefix.length - 1].end)]] : []),
    ...request.off.map((head) => ["--off", head]), ["--html", "page.html"],
  ];
  return `dragoman explain ${options.map(([name, value]) => `${name} ${quoted(String(value))}`).join(" ")} -- ${quoted(request.text)}`;
}

function argumentsOf({ text, source, target, sentence, beam, length_penalty: penalty, prefix, off }) {
  const python = (list) => `(${list.map((one) => `${JSON.stringify(one)}, `).join("").trimEnd()})`;
  return [
    JSON.stringify(text), `source=${JSON.stringify(source)}`, `target=${JSON.stringify(target)}`, ...(sentence ? [`sentence=${sentence}`] : []),
    `beam=${beam}`, `length_penalty=${penalty}`, ...(prefix.length ? [`prefix=${python(prefix)}`] : []), ...(off.length ? [`off=${python(off)}`] : []),
  ];
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
