// "Copy as PyTorch": one query's attention with the trace's own numbers, to run anywhere that has torch.

const digits = (value) => (Number.isFinite(value) ? Number(value.toPrecision(8)).toString() : "float('-inf')");
const row = (vector) => `[${Array.from(vector, digits).join(", ")}]`;
const rows = (vectors) => `[\n${vectors.map((vector) => `    ${row(vector)},`).join("\n")}\n]`;

// A comment stays one, whatever a person typed.
const comment = (text) => `# ${text.replace(/[\r\n\u2028\u2029\u0085\u000b\u000c\u001c-\u001e]+/g, " ")}`;

export function asPytorch({ title, keys, query, key, value, mask, weights, mixed }) {
  return `${comment(title)}
import math

import torch

q = torch.tensor(${row(query)})

# One row a key: ${keys.length} of them, ${query.length} numbers each.
K = torch.tensor(${rows(key)})
V = torch.tensor(${rows(value)})
may_look = torch.tensor([${mask.map((open) => (open ? "True" : "False")).join(", ")}])

scores = K @ q / math.sqrt(q.numel())
weights = scores.masked_fill(~may_look, -math.inf).softmax(dim=0)
mixed = weights @ V

${keys.map((text, index) => comment(`weights[${index}]: ${text}`)).join("\n")}
print(weights)

# What the model computed.
torch.testing.assert_close(weights, torch.tensor(${row(weights)}), atol=1e-5, rtol=1e-4)
torch.testing.assert_close(mixed, torch.tensor(${row(mixed)}), atol=1e-4, rtol=1e-4)
`;
}
