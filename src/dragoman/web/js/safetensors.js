// The safetensors format: eight bytes with the length of a JSON header, the header, then the numbers.

function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function numbers(dtype, bytes) {
  if (dtype === "F32") return new Float32Array(bytes);
  if (dtype === "F16") return Float32Array.from(new Uint16Array(bytes), half);
  throw new Error(`a tensor of type ${dtype}: expected F32 or F16`);
}

// ArrayBuffer -> Map of name -> { shape, data }
export function readSafetensors(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const tensors = new Map();
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const { dtype, shape } = entry;
    const [start, end] = entry.data_offsets;
    tensors.set(name, { shape, data: numbers(dtype, buffer.slice(8 + length + start, 8 + length + end)) });
  }
  return tensors;
}

export function fromBase64(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes.buffer;
}
