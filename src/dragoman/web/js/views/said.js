// A word that is spoken of, in quotation marks of our own script.

import { bdi, el } from "../dom.js";

export function said(text) {
  return el("q", {}, bdi(text));
}
