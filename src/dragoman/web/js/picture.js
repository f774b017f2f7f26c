// A view as an SVG picture: what the browser drew, written down again with real text, no stylesheet needed.

const ATTRIBUTES = ["fill", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight", "font-style", "text-anchor"];
const MARGIN = 24;

const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`)
  // XML has no way to write most control characters
  .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "");
const number = (value) => Number(value.toFixed(2));

// -> { text, width, height }
export function pictureOf(node) {
  const scrolled = [...node.querySelectorAll("*")].map((one) => [one, one.scrollLeft, one.scrollTop]).filter(([, left, top]) => left || top);
  node.classList.add("pictured"); // without the controls, and with all that one would scroll to
  try {
    return measured(node);
  } finally {
    node.classList.remove("pictured");
    for (const [one, left, top] of scrolled) one.scrollTo(left, top);
  }
}

function measured(node) {
  const frame = node.getBoundingClientRect();
  const origin = { x: frame.left - MARGIN, y: frame.top - MARGIN };
  const parts = [];
  const reach = { x: frame.right, y: frame.top + node.scrollHeight }; // of what is drawn: some of it is wider than its panel
  draw(node, origin, parts, reach);
  const [width, height] = [Math.ceil(reach.x - origin.x + MARGIN), Math.ceil(reach.y - origin.y + MARGIN)];
  const paper = getComputedStyle(document.body).backgroundColor;
  const text = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}"><rect width="100%" height="100%" fill="${paper}"/>${parts.join("")}</svg>`;
  return { text, width, height };
}

function draw(node, origin, parts, reach) {
  if (node.nodeType === Node.TEXT_NODE) {
    drawText(node, origin, parts);
    return;
  }
  if (node.nodeType !== Node.ELEMENT_NODE || node.matches(".unseen, input, option")) return;
  const style = getComputedStyle(node);
  const box = node.getBoundingClientRect();
  if (style.display === "none" || style.visibility === "hidden" || Number(style.opacity) === 0 || !box.width) return;
  reach.x = Math.max(reach.x, box.right);
  reach.y = Math.max(reach.y, box.bottom);
  if (node.tagName === "svg") {
    parts.push(drawingOf(node, box, origin));
    return;
  }
  if (node.tagName === "CANVAS") {
    parts.push(`<image x="${number(box.left - origin.x)}" y="${number(box.top - origin.y)}" width="${number(box.width)}" height="${number(box.height)}" preserveAspectRatio="none" image-rendering="pixelated" href="${enlarged(node)}"/>`);
    return;
  }
  drawBox(box, style, origin, parts);
  for (const child of node.childNodes) draw(child, origin, parts, reach);
}

const clear = (colour) => colour === "transparent" || /, 0\)$/.test(colour);

function drawBox(box, style, origin, parts) {
  const border = parseFloat(style.borderTopWidth) && !clear(style.borderTopColor) && style.borderTopStyle !== "none" && parseFloat(style.borderLeftWidth);
  if (clear(style.backgroundColor) && !border) return;
  const line = border ? ` stroke="${style.borderTopColor}" stroke-width="${border}"` : "";
  const fill = clear(style.backgroundColor) ? "none" : style.backgroundColor;
  parts.push(`<rect x="${number(box.left - origin.x)}" y="${number(box.top - origin.y)}" width="${number(box.width)}" height="${number(box.height)}" rx="${parseFloat(style.borderTopLeftRadius) || 0}" fill="${fill}"${line}/>`);
}

// A text may run over several lines: each line is written where it stood.
function drawText(node, origin, parts) {
  if (!node.data.trim()) return;
  const style = getComputedStyle(node.parentElement);
  const range = document.createRange();
  let line = null;
  const write = () => {
    if (!line?.text.trim()) return;
    const vertical = style.writingMode.startsWith("vertical");
    const [x, y] = [line.left - origin.x, line.bottom - origin.y - (line.bottom - line.top) * 0.22];
    const turned = vertical ? ` transform="rotate(-90 ${number(line.right - origin.x - 3)} ${number(line.bottom - origin.y)})"` : "";
    const place = vertical ? `x="${number(line.right - origin.x - 3)}" y="${number(line.bottom - origin.y)}"` : `x="${number(x)}" y="${number(y)}"`;
    const long = vertical ? "" : ` textLength="${number(line.right - line.left)}" lengthAdjust="spacingAndGlyphs"`;
    parts.push(`<text ${place}${turned}${long} fill="${style.color}" fill-opacity="${style.opacity}" font-family="${escaped(style.fontFamily)}" font-size="${style.fontSize}" font-weight="${style.fontWeight}" font-style="${style.fontStyle}" xml:space="preserve">${escaped(line.text.trim())}</text>`);
  };
  for (const found of node.data.matchAll(/\s*\S+/gu)) {
    range.setStart(node, found.index + (found[0].length - found[0].trimStart().length));
    range.setEnd(node, found.index + found[0].length);
    const box = range.getBoundingClientRect();
    if (!line || Math.abs(box.top - line.top) > 3) {
      write();
      line = { text: found[0], left: box.left, right: box.right, top: box.top, bottom: box.bottom };
    } else {
      line.text += found[0].replace(/\s+/gu, " ");
      line.right = Math.max(line.right, box.right);
      line.left = Math.min(line.left, box.left);
    }
  }
  write();
}

// A drawing of our own, with the styles that the page gave it written into it.
function drawingOf(node, box, origin) {
  const copy = node.cloneNode(true);
  const [from, to] = [[node, ...node.querySelectorAll("*")], [copy, ...copy.querySelectorAll("*")]];
  from.forEach((one, index) => {
    const style = getComputedStyle(one);
    for (const name of ATTRIBUTES) to[index].setAttribute(name, style.getPropertyValue(name));
    for (const name of ["class", "style", "tabindex"]) to[index].removeAttribute(name);
  });
  if (node.getAttribute("preserveAspectRatio") === "none") unstretch(copy, node, box);
  copy.setAttribute("x", number(box.left - origin.x));
  copy.setAttribute("y", number(box.top - origin.y));
  copy.setAttribute("width", number(box.width));
  copy.setAttribute("height", number(box.height));
  return new XMLSerializer().serializeToString(copy);
}

// A stretched drawing keeps its strokes by a rule that an enlarged picture would break: its points are moved instead.
function unstretch(copy, node, box) {
  const { width, height } = node.viewBox.baseVal;
  for (const path of copy.querySelectorAll("path")) {
    const moved = (_, x, y) => `${number((x * box.width) / width)},${number((y * box.height) / height)}`;
    path.setAttribute("d", path.getAttribute("d").replace(/([\d.]+),([\d.]+)/g, moved));
    path.removeAttribute("vector-effect");
  }
  copy.setAttribute("viewBox", `0 0 ${number(box.width)} ${number(box.height)}`);
}

// One pixel a number blurs in some viewers: each becomes a square.
function enlarged(canvas) {
  const scale = Math.max(1, Math.min(8, Math.floor(1200 / canvas.width)));
  const copy = document.createElement("canvas");
  copy.width = canvas.width * scale;
  copy.height = canvas.height * scale;
  const context = copy.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, 0, 0, copy.width, copy.height);
  return copy.toDataURL("image/png");
}

// -> Blob of a PNG at twice the size.
export async function pngOf(picture) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(picture.text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  const scale = Math.min(2, 16000 / picture.height, 16000 / picture.width);
  canvas.width = picture.width * scale;
  canvas.height = picture.height * scale;
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => { canvas.toBlob(resolve, "image/png"); });
}
