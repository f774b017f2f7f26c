// Small quiet controls, all native underneath: the browser brings the keyboard and the screen reader.

import { el } from "./dom.js";

let count = 0;

// A choice among few: radio buttons that look like one bar. `options` is [[value, label, title?], ...].
export function choice(label, options, { value, change, name }) {
  count += 1;
  const group = `${name}-${count}`;
  const inputs = options.map(([option, text, title]) => {
    const input = el("input", { type: "radio", name: group, value: option, on: { change: () => change(option) } });
    input.checked = option === value;
    return el("label", { class: "segment", title, data: { option } }, input, el("span", { text }));
  });
  const bar = el("fieldset", { class: "choice", data: { name } }, el("legend", { text: label }), el("div", {}, ...inputs));
  bar.show = (option) => {
    for (const input of bar.querySelectorAll("input")) input.checked = input.value === String(option);
  };
  return bar;
}

export function tick(label, { checked, change, name, title }) {
  const input = el("input", { type: "checkbox", on: { change: () => change(input.checked) } });
  input.checked = checked;
  const box = el("label", { class: "tick", title, data: { name } }, input, el("span", { text: label }));
  box.show = (value) => {
    input.checked = value;
  };
  return box;
}

// A list to choose from, for when there are many.
export function pick(label, options, { value, change, name }) {
  const select = el("select", { data: { name }, on: { change: () => change(select.value) } });
  const box = el("label", { class: "pick" }, el("span", { text: label }), select);
  box.show = (now, list = options) => {
    select.replaceChildren(...list.map(([option, text]) => el("option", { value: option, text })));
    select.value = String(now);
  };
  box.show(value);
  return box;
}

export function slider(label, { min, max, step, value, change, name, show = String }) {
  const output = el("output", { text: show(value) });
  const input = el("input", { type: "range", min, max, step, value, data: { name }, on: {
    input: () => { output.textContent = show(Number(input.value)); },
    change: () => change(Number(input.value)),
  } });
  const box = el("label", { class: "slider" }, el("span", { text: label }), input, output);
  box.show = (now) => {
    // What came with an address may lie beyond what can be dragged to.
    input.min = Math.min(min, now);
    input.max = Math.max(input.max, now);
    input.value = now;
    output.textContent = show(Number(now));
  };
  box.input = input;
  return box;
}

export function button(label, click, { kind = "quiet", name, title, ...rest } = {}) {
  return el("button", { type: "button", class: kind, title, data: name ? { name } : {}, text: label, on: { click }, ...rest });
}

// A view's opening: what it shows, and what it does not prove.
export function opening(title, shows, caution) {
  return el("header", { class: "opening" },
    el("h2", { text: title }),
    el("p", { class: "shows" }, shows, " ", el("span", { class: "caution", text: caution })));
}

// One line that says why nothing is here, in the room where something would be.
export function note(text) {
  return el("p", { class: "note", text });
}
