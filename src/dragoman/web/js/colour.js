// Colours that survive colour blindness: cividis for amounts, Okabe and Ito's palette for heads, blue to orange for signs.

// Cividis, sampled at equal distances.
const CIVIDIS = [
  [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115], [138, 134, 120], [165, 156, 116],
  [195, 179, 105], [225, 204, 85], [254, 232, 56],
];

const LESS = [[0, 114, 178], [130, 180, 214]];
const MORE = [[236, 176, 124], [213, 94, 0]];

function between(from, to, share) {
  return from.map((value, i) => Math.round(value + (to[i] - value) * share));
}

// 0..1 -> [r, g, b]
export function cividis(value) {
  const at = Math.min(Math.max(value, 0), 1) * (CIVIDIS.length - 1);
  const low = Math.min(Math.floor(at), CIVIDIS.length - 2);
  return between(CIVIDIS[low], CIVIDIS[low + 1], at - low);
}

// -1..1 -> [r, g, b], through the page's own background at 0
export function signed(value, middle) {
  const size = Math.min(Math.abs(value), 1);
  const [pale, full] = value < 0 ? [LESS[1], LESS[0]] : [MORE[0], MORE[1]];
  return size < 0.5 ? between(middle, pale, size * 2) : between(pale, full, size * 2 - 1);
}

export function css([red, green, blue]) {
  return `rgb(${red}, ${green}, ${blue})`;
}

// Text that can be read on a cell of that colour.
export function readableOn([red, green, blue]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#1c1a17" : "#ffffff";
}

// The page's own colours, as numbers for a canvas: `#rrggbb` custom properties.
export function token(name) {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim().replace("#", "");
  return [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16) || 0);
}

export const HEAD_COLOURS = 8;

// Heads beyond the palette come round again, with a dash: colour alone never has to tell two apart.
export function headClass(head) {
  return `head-${head % HEAD_COLOURS}${head >= HEAD_COLOURS ? " dashed" : ""}`;
}
