// "Copy as PyTorch": one query's attention from x to the norm with the trace's own numbers, to run wherever torch is.

// The fewest digits that read back as the same float32; a point in all of them, for numbers without one make integers.
function digits(value) {
  const count = [6, 7, 8].find((few) => Math.fround(Number(value.toPrecision(few))) === value) ?? 9;
  const text = Number(value.toPrecision(count)).toString();
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}

const row = (vector) => `torch.tensor([${Array.from(vector, digits).join(", ")}])`;
const rows = (vectors) => `torch.tensor([\n${vectors.map((vector) => `    [${Array.from(vector, digits).join(", ")}],`).join("\n")}\n])`;

// A comment stays one, whatever a person typed.
const comment = (text) => `# ${text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ")}`;

export function asPytorch(work, title) {
  const { keys, learned } = work;
  const parts = learned ? [...states(work), ...projections(work)] : given(work);
  return [
    comment(title), "import math", "", "import torch", "",
    ...parts,
    "# Scores, scaled, masked, and their softmax.",
    `may_look = torch.tensor([${work.mask.map((open) => (open ? "True" : "False")).join(", ")}])`,
    "scores = K @ q",
    "scaled = scores / math.sqrt(q.numel())",
    "weights = scaled.masked_fill(~may_look, -math.inf).softmax(dim=0)",
    ...keys.map((text, index) => comment(`weights[${index}]: ${text}`)), "",
    "# The weighted sum of the values: this head's answer.",
    "mixed = weights @ V", "",
    ...(learned ? outcome(work) : []),
    ...checks(work),
  ].join("\n");
}

// x of who asks, and of who is asked.
function states({ kind, row: at, pre, input, before, memory, states: brought, norm, learned }) {
  if (kind === "cross") {
    return [
      ...(pre ? ["# The state of the one who asks, and its norm.", `state = ${row(before)}`, ...normed(norm, learned, "x", "state")]
        : ["# The state of the one who asks.", `x = state = ${row(input)}`]),
      "", "# The encoder's output: one row a source piece.", `memory = ${rows(memory)}`, "",
    ];
  }
  return [
    "# The states that come in: one row a piece.", `states = ${rows(brought)}`,
    ...(pre ? normed(norm, learned, "memory", "states") : ["memory = states"]),
    `state, x = states[${at}], memory[${at}]  # of the one who asks`, "",
  ];
}

function normed(norm, { gain, shift }, name, from) {
  const lines = [`gain = ${row(gain)}`];
  if (norm === "rms") return [...lines, `${name} = torch.nn.functional.rms_norm(${from}, gain.shape, gain)`];
  return [...lines, `shift = ${row(shift)}`, `${name} = torch.nn.functional.layer_norm(${from}, gain.shape, gain, shift)`];
}

function projections({ head, learned }) {
  const one = (letter, line) => {
    const [matrix, bias] = [learned[`w_${letter}`], learned[`b_${letter}`]];
    const name = letter.toUpperCase();
    const lines = [`W_${name} = ${rows(matrix)}.T`];
    if (!bias) return [...lines, line];
    return [...lines, `b_${name} = ${row(bias)}`, `${line} + b_${name}`];
  };
  return [
    comment(`This head's matrices (head ${head + 1}); written a column a line, so turned.`),
    ...one("q", "q = x @ W_Q"), ...one("k", "K = memory @ W_K"), ...one("v", "V = memory @ W_V"), "",
  ];
}

function given({ query, key, value }) {
  return [
    "# The matrices are not at hand (a page that was saved as one file has none): this begins with q, K and V as they came",
    "# out of them, and ends with the weighted sum.", `q = ${row(query)}`, `K = ${rows(key)}`, `V = ${rows(value)}`, "",
  ];
}

// W_O, the residual and the norm. The other heads' shares are given: they have arithmetic of their own.
function outcome({ learned, shares, head, pre, norm, output }) {
  const others = shares.filter((_, index) => index !== head);
  return [
    "# This head's part of W_O; then what the other heads add through theirs, one row a head, as the model computed it.",
    `W_O = ${rows(learned.w_o)}.T`,
    "share = mixed @ W_O",
    `others = ${others.length ? rows(others) : `torch.zeros(0, ${output.length})`}`,
    ...(learned.b_o ? [`b_O = ${row(learned.b_o)}`, "output = share + others.sum(dim=0) + b_O"] : ["output = share + others.sum(dim=0)"]), "",
    `# The residual${pre ? "; the norm came first, and what goes on is the sum" : ", and the norm"}.`,
    "summed = state + output",
    ...(pre ? ["onward = summed"] : normed(norm, learned, "onward", "summed")), "",
  ];
}

// What the model computed, and how near this must come.
function checks({ learned, input, query, key, value, scaled, weights, mixed, shares, head, output, summed, onward }) {
  const near = (name, text) => `torch.testing.assert_close(${name}, ${text}, atol=1e-4, rtol=1e-4)`;
  const found = [["scaled", scaled], ["weights", weights], ["mixed", mixed]];
  if (learned) {
    found.unshift(["x", input], ["q", query], ["K", key], ["V", value]);
    found.push(["share", shares[head]], ["output", output], ["summed", summed], ["onward", onward]);
  }
  return [
    "# What the model computed.",
    ...found.map(([name, vector]) => near(name, name === "K" || name === "V" ? rows(vector) : row(vector))),
    "print(weights)", "",
  ];
}
