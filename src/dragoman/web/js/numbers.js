// Numbers with as many digits as mean something, and a true minus sign.

export function fixed(value, digits = 3) {
  if (!Number.isFinite(value)) return value === -Infinity ? "−∞" : value === Infinity ? "∞" : "–";
  return value.toFixed(digits).replace("-", "−");
}

// A share of one: 0.283; what would read as nothing is told apart from it.
export function share(value) {
  if (value > 0 && value < 0.0005) return "<0.001";
  return fixed(value, 3);
}

export function percent(value) {
  if (value > 0 && value < 0.001) return "<0.1%";
  if (value > 0.999 && value < 1) return ">99.9%";
  return `${(100 * value).toFixed(1)}%`;
}

// Change in probability, in points: +12.3
export function points(value) {
  const text = (100 * value).toFixed(1);
  if (Number(text) === 0) return "0.0";
  return value > 0 ? `+${text}` : text.replace("-", "−");
}

export function compact(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e4)) return value.toExponential(1).replaceAll("-", "−");
  return fixed(value, size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

export function thousands(value) {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}
