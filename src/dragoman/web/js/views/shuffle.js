// What shuffling did: the new order, and how near each piece's vector came to the one it had.

import { bdi, el } from "../dom.js";
import { compact, fixed } from "../numbers.js";

export function shuffleAnswer({ order, without_positions: without, with_positions: withThem }, units) {
  const row = (title, { largest_difference: difference, mean_cosine: cosine }, meaning) => el("tr", {},
    el("th", { scope: "row", text: title }), el("td", { class: "num", text: compact(difference) }), el("td", { class: "num", text: fixed(cosine, 4) }), el("td", { text: meaning }));
  const heads = ["", "largest difference", "mean cosine", ""];
  return el("div", {},
    el("p", { class: "line small" }, ...order.flatMap((place) => [el("span", { class: "chip still" }, bdi(units[place]?.text ?? "")), " "])),
    el("div", { class: "scroll" }, el("table", { class: "plain" },
      el("thead", {}, el("tr", {}, ...heads.map((text) => el("th", { scope: "col", text })))),
      el("tbody", {},
        row("without positions", without, without.largest_difference < 1e-3 ? "the same vectors, in the new order (but for rounding)" : "not the same"),
        row("with positions", withThem, withThem.largest_difference > 10 * without.largest_difference ? "other vectors: the order is heard" : "hardly different")))));
}
