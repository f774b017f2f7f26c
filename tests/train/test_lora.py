"""Low-rank adapters: they start as nothing, they alone learn, and merged they leave a plain model."""

import pytest
import torch
from torch import Tensor

from dragoman.config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.train.lora import SCALE, adapt, merged_state
from dragoman.train.objective import Objective

RANK = 3


def make_model(**changes: object) -> Transformer:
    torch.manual_seed(7)
    shape = {"d_model": 22, "d_ff": 37, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 1, "dropout": 0.0}
    return Transformer(ModelConfig(**{"vocab_size": 31, "max_length": 29, **shape, **changes}))


def ids() -> tuple[Tensor, Tensor]:
    return torch.randint(3, 31, (5, 11)), torch.randint(3, 31, (5, 7))


def train_a_little(model: Transformer) -> None:
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
    for _ in range(3):
        source_BS, target_BT = ids()
        optimizer.zero_grad()
        Objective(model, 0, smoothing=0.0)(source_BS, target_BT, target_BT).smoothed.backward()
        optimizer.step()


def test_an_adapted_model_starts_as_the_model_it_was() -> None:
    model, (source_BS, target_BT) = make_model(), ids()
    before_BTV = model(source_BS, target_BT)
    adapt(model, RANK)
    assert torch.equal(model(source_BS, target_BT), before_BTV)


@pytest.mark.parametrize("changes", [{}, {"activation": "swiglu", "attention_bias": True, "position": "learned"}])
def test_every_matrix_of_attention_and_feed_forward_has_an_adapter_and_nothing_else_learns(
    changes: dict[str, object],
) -> None:
    plain, model = make_model(**changes), make_model(**changes)
    adapt(model, RANK)
    matrices = [p for name, p in plain.named_parameters() if p.ndim == 2 and "embedding" not in name]
    trainable = [p for p in model.parameters() if p.requires_grad]
    assert sorted(map(tuple, (p.shape for p in trainable))) == sorted(
        shape for height, width in (p.shape for p in matrices) for shape in ((RANK, width), (height, RANK))
    )


def test_only_adapters_learn() -> None:
    model = make_model()
    frozen = {id(p): p.detach().clone() for p in model.parameters()}
    adapt(model, RANK)
    train_a_little(model)
    moved = {name for name, p in model.named_parameters() if id(p) not in frozen}
    for name, parameter in model.named_parameters():
        if name in moved:
            assert name.endswith((".a", ".b"))
            assert parameter.any()
        else:
            assert torch.equal(parameter, frozen[id(parameter)])
    assert moved


def test_merged_weights_have_the_plain_names_and_shapes_and_do_what_the_adapted_model_does() -> None:
    model, (source_BS, target_BT) = make_model(), ids()
    plain = make_model()
    adapt(model, RANK)
    train_a_little(model)
    state = merged_state(model)
    assert {name: value.shape for name, value in state.items()} == {
        name: value.shape for name, value in plain.state_dict().items()
    }
    untrained_BTV = plain(source_BS, target_BT)
    plain.load_state_dict(state)
    torch.testing.assert_close(plain(source_BS, target_BT), model(source_BS, target_BT))
    assert not torch.allclose(plain(source_BS, target_BT), untrained_BTV)


def test_a_merged_matrix_is_w_and_twice_b_a() -> None:
    model = make_model()
    before = model.encoder.blocks[0].feed_forward.w_1.weight.detach().clone()
    adapt(model, RANK)
    train_a_little(model)
    (adapter,) = model.encoder.blocks[0].feed_forward.w_1.parametrizations.weight
    merged = merged_state(model)["encoder.blocks.0.feed_forward.w_1.weight"]
    assert SCALE == 2
    torch.testing.assert_close(merged, before + 2 * adapter.b.detach() @ adapter.a.detach())


def test_merging_leaves_the_adapted_model_as_it_is() -> None:
    model = make_model()
    adapt(model, RANK)
    names = [name for name, _ in model.named_parameters()]
    merged_state(model)
    assert [name for name, _ in model.named_parameters()] == names


def test_a_model_without_adapters_merges_to_itself() -> None:
    model = make_model()
    state = merged_state(model)
    assert state.keys() == model.state_dict().keys()
    assert all(torch.equal(value, model.state_dict()[name]) for name, value in state.items())


def test_a_rank_costs_as_many_weights_as_it_says() -> None:
    model = make_model()
    adapt(model, RANK)
    learning = sum(p.numel() for p in model.parameters() if p.requires_grad)
    assert learning == RANK * sum(
        sum(value.shape) for name, value in make_model().named_parameters() if value.ndim == 2 and "embed" not in name
    )
