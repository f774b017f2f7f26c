"""`dragoman paper`: builds what the paper and the lecture notes say, and compares figure by figure.

Each function of `CHECKS` yields rows; nothing here repeats the model's own arithmetic: what is wanted is a printed
figure, or worked out another way.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from dragoman.config import PRESETS, ModelConfig
from dragoman.model.attention import attention, attention_layer, dot_product, masked_softmax
from dragoman.model.multi_head import MultiHeadAttention, join_heads
from dragoman.model.position import sinusoid
from dragoman.model.transformer import Transformer
from dragoman.search.length import length_penalty
from dragoman.train.loss import smoothed_loss
from dragoman.train.schedule import paper_rate

BASE_BODY = 44_101_632
"""Parameters of the base model without embeddings and attention biases, by the arithmetic of section 3."""

VOCABULARY = 41_100
BIG_VOCABULARY = 36_000
"""Table 3 does not print its vocabulary. Its rounded column fits about 41,100 pieces; the big row, about 36,000."""


@dataclass(frozen=True)
class Check:
    """One row: what was compared, the figure wanted, the figure got."""

    check: str
    wanted: str
    got: str

    @property
    def passed(self) -> bool:
        return self.wanted == self.got


def run_checks() -> list[Check]:
    """Every row, in the paper's order."""
    return [row for check in CHECKS for row in check()]


def attention_by_hand() -> Iterator[Check]:
    """The notes' worked example: two words, scores 112 and 96, d_k 64."""
    query_QC = torch.zeros(1, 64)
    query_QC[0, 0] = 1.0
    key_KC = torch.zeros(2, 64)
    key_KC[0, 0], key_KC[1, 0] = 112.0, 96.0
    scores_QK = dot_product(query_QC, key_KC)
    yield Check("notes: q1.k1, q1.k2", "112, 96", _numbers(scores_QK[0], 0))
    yield Check("notes: divided by sqrt(d_k) = 8", "14, 12", _numbers(scores_QK[0] / 64**0.5, 0))
    yield Check("notes: softmax", "0.88, 0.12", _numbers(attention(query_QC, key_KC, key_KC).weights[0], 2))

    x_QD, w_DC = torch.randn(2, 512), torch.randn(512, 64)
    attended = attention_layer(x_QD, x_QD, w_DC, w_DC, w_DC)
    yield Check("notes: X 2x512, W_Q 512x64 -> Q K^T, Z", "2x2, 2x64", _shapes(attended.weights, attended.values))
    heads = MultiHeadAttention(512, num_heads=8, d_k=64, d_v=64)
    query, memory = heads.project(x_QD[None])
    joined = join_heads(attention(query, memory.key_BHKC, memory.value_BHKC).values)
    shapes = _shapes(joined[0], heads.attend(query, memory)[0])
    yield Check("notes: 8 heads joined, then W_O", "2x512, 2x512", shapes)

    masked_Q4 = masked_softmax(torch.zeros(4, 4), torch.ones(4, 4, dtype=torch.bool).tril())
    yield Check("notes: masked softmax of equal scores, row 3", "0.33, 0.33, 0.33, 0.00", _numbers(masked_Q4[2], 2))


def positions() -> Iterator[Check]:
    """'I am a robot', d 4, base 100."""
    wanted = ("0.00, 1.00, 0.00, 1.00", "0.84, 0.54, 0.10, 1.00", "0.91, -0.42, 0.20, 0.98", "0.14, -0.99, 0.30, 0.96")
    table_TD = sinusoid(4, 4, base=100.0)
    for word, row, got_D in zip(("I", "am", "a", "robot"), wanted, table_TD, strict=True):
        # The notes print the cosine of 0.1 and of 0.2 to two digits: 0.995 is 1.00 there.
        yield Check(f"notes: position of {word!r}, d 4, base 100", row, _numbers(got_D, 2))


def parameters() -> Iterator[Check]:
    """Table 3, every row: the body by the formula of section 3 exactly, the printed column after rounding."""
    for name, preset in PRESETS.items():
        if preset.bleu is None:
            continue
        vocab_size = BIG_VOCABULARY if name == "big" else VOCABULARY
        with torch.device("meta"):
            model = Transformer(replace(preset.model, vocab_size=vocab_size))
        body = f"{model.num_parameters(body=True):,}"
        yield Check(f"Table 3 {name}: parameters of the body", f"{_body_by_formula(preset.model):,}", body)
        if preset.parameters_millions:
            wanted, got = f"{preset.parameters_millions} M", f"{model.num_parameters() / 1e6:.0f} M"
            yield Check(f"Table 3 {name}: printed column, {vocab_size:,} pieces", wanted, got)
    with torch.device("meta"):
        biased = Transformer(ModelConfig(attention_bias=True))
    yield Check("base body with attention biases", "44,138,496", f"{biased.num_parameters(body=True):,}")
    yield Check("base body, worked out by hand", f"{BASE_BODY:,}", f"{_body_by_formula(ModelConfig()):,}")
    yield Check("big body, worked out by hand", "176,283,648", f"{_body_by_formula(PRESETS['big'].model):,}")


def training() -> Iterator[Check]:
    """Section 5: the learning rate's curve, label smoothing."""
    for step, wanted in ((1, "1.747e-07"), (4000, "6.988e-04"), (100_000, "1.398e-04")):
        yield Check(
            f"learning rate at step {step:,}, d_model 512, warmup 4000", wanted, f"{paper_rate(step, 512, 4000):.3e}"
        )
    # p = (1/2, 1/4, 1/8, 1/8) and smoothing 0.1: q = (0.925, 0.025, 0.025, 0.025), so 0.925 + 0.2 bits times ln 2.
    probability_V = torch.tensor([[0.5, 0.25, 0.125, 0.125]])
    loss = smoothed_loss(probability_V.log(), torch.tensor([0]), smoothing=0.1)
    yield Check("label smoothing 0.1 of p = (1/2, 1/4, 1/8, 1/8)", "0.7798", f"{loss.item():.4f}")


def searching() -> Iterator[Check]:
    """Section 6.1: the length penalty."""
    for length, wanted in ((1, "1.0000"), (7, "1.5157"), (25, "2.6265")):
        yield Check(f"length penalty of {length} pieces, alpha 0.6", wanted, f"{length_penalty(length, 0.6):.4f}")


def behaviour() -> Iterator[Check]:
    """What no figure shows: causality, permutation equivariance, indifference to padding."""
    model, source_BS, target_BT = _small_model()
    changed_BT = target_BT.clone()
    changed_BT[:, 4:] = (changed_BT[:, 4:] + 1) % 90 + 3
    before, after = model(source_BS, target_BT), model(source_BS, changed_BT)
    same = torch.equal(before[:, :4], after[:, :4])
    differs = not torch.equal(before[:, 4:], after[:, 4:])
    yield Check("a later target piece changes no earlier output, exactly", "same before, differs after",
                f"{'same' if same else 'differs'} before, {'differs' if differs else 'same'} after")  # fmt: skip

    order_S = torch.tensor([3, 0, 6, 2, 5, 1, 4])
    x_BSD = model.source_embedding.pieces(source_BS)
    yield Check("self-attention without positions: p(sa(X)) = sa(p(X))", "equal",
                _compare(model.encoder(x_BSD)[:, order_S], model.encoder(x_BSD[:, order_S])))  # fmt: skip
    with_positions = [model.encoder(model.source_embedding(ids)) for ids in (source_BS, source_BS[:, order_S])]
    yield Check("with positions", "different", _compare(with_positions[0][:, order_S], with_positions[1]))

    padded_BS = torch.cat((source_BS, source_BS.new_zeros(2, 5)), dim=1)
    yield Check("padding a source changes no output", "equal", _compare(before, model(padded_BS, target_BT)))


CHECKS: tuple[Callable[[], Iterator[Check]], ...] = (
    attention_by_hand,
    positions,
    parameters,
    training,
    searching,
    behaviour,
)


def _body_by_formula(config: ModelConfig) -> int:
    """Section 3 written out: N encoder blocks with one attention and two norms, N decoder blocks with two and three."""
    assert config.d_k is not None
    assert config.d_v is not None
    attention_matrices = config.d_model * config.num_heads * (2 * config.d_k + 2 * config.d_v)
    feed_forward = 2 * config.d_model * config.d_ff + config.d_ff + config.d_model
    norm = 2 * config.d_model
    encoder_block = attention_matrices + feed_forward + 2 * norm
    decoder_block = 2 * attention_matrices + feed_forward + 3 * norm
    return config.encoder_layers * encoder_block + config.decoder_layers * decoder_block


def _small_model() -> tuple[Transformer, Tensor, Tensor]:
    """A small model with random weights, two sources of seven pieces, two targets of nine."""
    with torch.random.fork_rng():
        torch.manual_seed(17)
        model = Transformer(replace(PRESETS["tiny"].model, vocab_size=101)).eval()
        model.requires_grad_(False)
        return model, torch.randint(3, 101, (2, 7)), torch.randint(3, 101, (2, 9))


def _compare(a: Tensor, b: Tensor) -> str:
    return "equal" if torch.allclose(a, b, atol=1e-5) else "different"


def _numbers(values: Tensor, digits: int) -> str:
    return ", ".join(f"{value + 0.0:.{digits}f}" for value in values.tolist())


def _shapes(*tensors: Tensor) -> str:
    return ", ".join("x".join(map(str, tensor.shape)) for tensor in tensors)
