// Share: the address, the open view as a picture, one offline file, the trace; and the same from elsewhere.

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
    replace(commands, elsewhere(app));
    for (const one of dialog.querySelectorAll("[data-name=share-html]")) one.disabled = app.store.offline;
    dialog.showModal();
  }, { name: "share" });
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  tools.append(open);
  document.body.append(dialog);
  app.onChange(() => { open.disabled = !app.meta; });
}

function elsewhere(app) {
  const shell = `'${app.state.text.replaceAll("'", "'\\''")}'`;
  return `dragoman explain ${shell} --html page.html

from dragoman import explain
trace = explain.open_explainer(${JSON.stringify(app.meta.model.name)}).trace(${JSON.stringify(app.state.text)})
trace.save("trace")`;
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = el("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
