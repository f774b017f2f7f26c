"""What a head does in a sentence, in numbers and a few words. All of it is read off its weights (Q, K); no torch here.

    entropy       how many bits it takes to say where a query looks: 0 is one key; the mean over queries
    evenness      the same as a share of what it could be, log2 of the keys in sight: 0 one key, 1 all alike
    diagonality   the correlation of a query's place and the places it looks at, under the weights: 1 walks along with
                  it, 0 looks at the same places from everywhere, -1 walks the other way
    label         what most of the weight does, if there is such a thing, and `share`: how much of it does

A label says where a head looks in this one sentence. It is no proof of what the head is for.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dragoman.explain.request import HeadName
from dragoman.explain.trace import Array, Arrays, Head, Side

MOST = 0.5
"""A label stands for at least this much of the weight."""
EVEN = 0.8
"""From this evenness on a head is called spread out."""
ALONG = 0.7
"""From this diagonality on a cross-attention head is said to follow the source's order."""

_OFFSETS = {
    "encoder_self": {0: "at itself", -1: "at the previous piece", 1: "at the next piece"},
    # Row t reads input t: the last piece that was written is the query itself.
    "decoder_self": {0: "at the last piece written", -1: "at the last piece but one"},
    "cross": {},
}


def look_at_heads(tensors: Arrays, heads: list[HeadName], source: Side) -> tuple[Head, ...]:
    """A line for each head whose weights were written down."""
    found = []
    for name in heads:
        weights = tensors.get(f"{name.attention_name}.weights")
        if weights is not None:
            found.append(look_at_head(name, weights[name.head], source))
    return tuple(found)


def look_at_head(name: HeadName, weights_QK: Array, source: Side) -> Head:
    """One head's numbers and label."""
    causal = name.kind == "decoder_self"
    evenness = mean_evenness(weights_QK, causal)
    label, share = _label(name.kind, weights_QK, evenness, source)
    return Head(
        kind=name.kind,
        layer=name.layer,
        head=name.head,
        name=str(name),
        entropy=round(float(entropies(weights_QK).mean()), 6),
        evenness=round(evenness, 6),
        diagonality=round(diagonality(weights_QK), 6),
        label=label,
        share=round(share, 6),
    )


def entropies(weights_QK: Array) -> Array:
    """-sum w log2 w of each query."""
    wide = weights_QK.astype(np.float64)
    logs = np.log2(wide, out=np.zeros_like(wide), where=wide > 0)
    result: Array = -(wide * logs).sum(axis=-1)
    return result


def mean_evenness(weights_QK: Array, causal: bool) -> float:
    """The mean of entropy / log2(keys in sight), over the queries that see more than one key."""
    num_queries, num_keys = weights_QK.shape
    in_sight = np.arange(1, num_queries + 1) if causal else np.full(num_queries, num_keys)
    several = in_sight > 1
    if not several.any():
        return 0.0
    return float((entropies(weights_QK)[several] / np.log2(in_sight[several])).mean())


def diagonality(weights_QK: Array) -> float:
    """The correlation of the query's and the key's place when (query, key) is drawn as the weights say."""
    joint = weights_QK.astype(np.float64) / max(weights_QK.sum(dtype=np.float64), 1e-12)
    query, key = np.arange(joint.shape[0]), np.arange(joint.shape[1])
    by_query, by_key = joint.sum(axis=1), joint.sum(axis=0)
    query = query - by_query @ query
    key = key - by_key @ key
    spread = np.sqrt((by_query @ query**2) * (by_key @ key**2))
    return float(query @ joint @ key / spread) if spread > 1e-9 else 0.0


def _label(kind: str, weights_QK: Array, evenness: float, source: Side) -> tuple[str, float]:
    """The description that most of the weight meets."""
    shares = {text: _at_offset(weights_QK, offset) for offset, text in _OFFSETS[kind].items()}
    columns = weights_QK.mean(axis=0)
    # The first queries of a decoder see little but its start.
    start = float(weights_QK[1:, 0].mean()) if kind == "decoder_self" and len(weights_QK) > 1 else float(columns[0])
    if kind == "decoder_self":
        shares["at the start"] = start
    else:
        shares |= _columns(columns, source)
    best = max(shares, key=shares.__getitem__)
    if shares[best] >= MOST:
        return best, shares[best]
    if evenness >= EVEN:
        return "spread out", evenness
    if kind == "cross" and (along := diagonality(weights_QK)) >= ALONG:
        return "follows the source's order", along
    return "mixed", shares[best]


def _at_offset(weights_QK: Array, offset: int) -> float:
    """The mean weight of the key `offset` places from the query, over the queries that have such a key."""
    diagonal = np.diagonal(weights_QK, offset)
    return float(diagonal.mean()) if diagonal.size else 0.0


def _columns(columns: Array, source: Side) -> Mapping[str, float]:
    """What single source pieces get: the end, a language tag, or one piece that all look at."""
    shares: dict[str, float] = {}
    last = len(columns) - 1
    for place, piece in enumerate(source.pieces[: len(columns)]):
        if piece.special:
            text = "at the end" if place == last else f"at the tag {piece.text}"
        else:
            text = f"at “{piece.text}”"
        shares[text] = shares.get(text, 0.0) + float(columns[place])
    return shares
