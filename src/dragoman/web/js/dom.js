// Elements, made without ever reading text as markup: what a person typed stays text.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else if (name === "text") node.textContent = value;
    else if (name === "data") Object.assign(node.dataset, value);
    else if (name === "css") for (const [key, item] of Object.entries(value)) node.style.setProperty(key, item);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

// el("button", { class: "quiet", text: "Play", on: { click } }, child, ...)
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

const FROM_THE_RIGHT = new Set(["ar", "arz", "ary", "azb", "ckb", "dv", "fa", "he", "iw", "nqo", "pnb", "ps", "sd", "syr", "ug", "ur", "yi"]);
const RIGHT_LETTER = /[\p{Script=Adlam}\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Nko}\p{Script=Syriac}\p{Script=Thaana}]/u;

// Which way a text runs, "rtl" or "ltr": its language says so, or else most of its letters.
export function directionOf(code, text = "") {
  if (FROM_THE_RIGHT.has((code ?? "").split(/[-_]/)[0].toLowerCase())) return "rtl";
  const letters = text.match(/\p{L}/gu) ?? [];
  return 2 * letters.filter((letter) => RIGHT_LETTER.test(letter)).length > letters.length ? "rtl" : "ltr";
}

// Make an element one of a language: for its direction, and for the voice that reads it out.
export function inLanguage(node, code, text) {
  node.lang = code ?? "";
  node.dir = directionOf(code, text);
  return node;
}

// Read out when there is a pause.
export function announce(...children) {
  document.getElementById("live").replaceChildren(...children);
}

// Words of any script, isolated so that a right-to-left one does not turn its neighbours round.
export function bdi(text, props = {}) {
  return el("bdi", { dir: "auto", ...props, text });
}

// A word that is spoken of, in quotation marks of our own script.
export function said(text, props = {}) {
  return el("q", {}, bdi(text, props));
}

export function replace(node, ...children) {
  node.replaceChildren(...children.flat().filter(Boolean));
  return node;
}

// One stop for Tab, arrow keys within: `items` is read at each key press, so lists may grow.
export function roving(container, selector, keys = { back: ["ArrowLeft", "ArrowUp"], on: ["ArrowRight", "ArrowDown"] }) {
  const items = () => [...container.querySelectorAll(selector)].filter((item) => !item.disabled);
  container.addEventListener("keydown", (event) => {
    const list = items();
    const at = list.indexOf(event.target);
    if (at < 0) return;
    let to = at;
    if (keys.on.includes(event.key)) to = Math.min(at + 1, list.length - 1);
    else if (keys.back.includes(event.key)) to = Math.max(at - 1, 0);
    else if (event.key === "Home") to = 0;
    else if (event.key === "End") to = list.length - 1;
    else return;
    event.preventDefault();
    event.stopPropagation();
    focusOne(list, list[to]);
    list[to].focus();
  });
  container.addEventListener("focusin", (event) => {
    const list = items();
    if (list.includes(event.target)) focusOne(list, event.target);
  });
  return () => {
    const list = items();
    if (list.length && !list.some((item) => item.tabIndex === 0)) focusOne(list, list[0]);
  };
}

export function focusOne(list, chosen) {
  for (const item of list) item.tabIndex = item === chosen ? 0 : -1;
}

export function stillness() {
  return window.matchMedia("(prefers-reduced-motion: reduce)").matches;
}
