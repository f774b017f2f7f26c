"""From ids to the loss: real positions alone count, and R-Drop asks two dropout passes to agree."""

from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.transformer import Transformer
from dragoman.train.loss import chunked_loss
from dragoman.train.objective import Objective

PADDING, VOCABULARY = 0, 31


def make_model(**changes: object) -> Transformer:
    torch.manual_seed(7)
    shape = {"d_model": 22, "d_ff": 37, "num_heads": 2, "encoder_layers": 2, "decoder_layers": 1, "dropout": 0.0}
    return Transformer(ModelConfig(**{"vocab_size": VOCABULARY, "max_length": 29, **shape, **changes}))


def make_batch() -> tuple[Tensor, Tensor, Tensor]:
    """Three pairs with 5, 7 and 11 source pieces, and 13, 3 and 2 target pieces: source, target in, target out."""
    source_BS, target_out_BT = (torch.randint(3, VOCABULARY, (3, width)) for width in (11, 13))
    for row, (source, target) in enumerate(((5, 13), (7, 3), (11, 2))):
        source_BS[row, source:] = PADDING
        target_out_BT[row, target:] = PADDING
    target_in_BT = F.pad(target_out_BT[:, :-1], (1, 0), value=1)
    return source_BS, target_in_BT, target_out_BT


def gradients(model: nn.Module) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def test_the_loss_is_the_cross_entropy_of_the_real_target_pieces_summed() -> None:
    model, (source_BS, target_in_BT, target_out_BT) = make_model(), make_batch()
    loss = Objective(model, PADDING, smoothing=0.1)(source_BS, target_in_BT, target_out_BT)
    logits_NV = model(source_BS, target_in_BT).flatten(0, 1)
    wanted = {
        smoothing: F.cross_entropy(
            logits_NV, target_out_BT.flatten(), ignore_index=PADDING, label_smoothing=smoothing, reduction="sum"
        )
        for smoothing in (0.0, 0.1)
    }
    torch.testing.assert_close(loss.smoothed, wanted[0.1])
    torch.testing.assert_close(loss.plain, wanted[0.0])


@pytest.mark.parametrize("r_drop", [0.0, 0.5])
def test_padding_changes_neither_loss_nor_gradients(r_drop: float) -> None:
    model, batch = make_model(), make_batch()
    objective = Objective(model, PADDING, smoothing=0.1, r_drop=r_drop).train()
    tight = objective(*batch)
    tight.smoothed.backward()
    wanted = gradients(model)
    model.zero_grad()
    padded = objective(
        *(F.pad(ids, (0, columns), value=PADDING) for ids, columns in zip(batch, (7, 5, 5), strict=True))
    )
    padded.smoothed.backward()
    torch.testing.assert_close(padded.smoothed, tight.smoothed)
    torch.testing.assert_close(gradients(model), wanted, atol=1e-5, rtol=1e-4)


def test_a_batch_without_a_real_target_piece_costs_nothing_and_teaches_nothing() -> None:
    model, (source_BS, target_in_BT, target_out_BT) = make_model(), make_batch()
    loss = Objective(model, PADDING, smoothing=0.1)(source_BS, target_in_BT, torch.full_like(target_out_BT, PADDING))
    loss.smoothed.backward()
    assert loss.smoothed.item() == loss.plain.item() == 0
    assert not any(gradient.any() for gradient in gradients(model).values())
    # Every parameter takes part all the same: DDP would wait for ever for one that does not.
    assert gradients(model).keys() == dict(model.named_parameters()).keys()


def test_r_drop_without_dropout_is_the_plain_loss() -> None:
    model, batch = make_model(), make_batch()
    plain = Objective(model, PADDING, smoothing=0.1).train()(*batch)
    agreeing = Objective(model, PADDING, smoothing=0.1, r_drop=0.7).train()(*batch)
    torch.testing.assert_close(agreeing.smoothed, plain.smoothed)
    torch.testing.assert_close(agreeing.plain, plain.plain)


def test_r_drop_with_dropout_adds_its_weight_times_what_two_passes_disagree_by() -> None:
    model, batch = make_model(dropout=0.3), make_batch()

    def loss(r_drop: float) -> Tensor:
        torch.manual_seed(11)
        return Objective(model, PADDING, smoothing=0.1, r_drop=r_drop).train()(*batch).smoothed.detach()

    none, one, three = loss(1e-12), loss(1.0), loss(3.0)
    assert one - none > 0.01
    torch.testing.assert_close(three - none, 3 * (one - none))


def test_r_drops_disagreement_is_the_mean_of_both_divergences() -> None:
    model, batch = make_model(dropout=0.3), make_batch()
    torch.manual_seed(11)
    ours = Objective(model, PADDING, smoothing=0.0, r_drop=2.0).train()(*batch)
    torch.manual_seed(11)
    logits_BTV = model.train()(*(ids.repeat(2, 1) for ids in batch[:2]))
    one_BTV, other_BTV = logits_BTV.log_softmax(dim=-1).chunk(2)
    divergence_BT = sum(
        F.kl_div(theirs, mine, log_target=True, reduction="none").sum(-1) / 2
        for mine, theirs in ((one_BTV, other_BTV), (other_BTV, one_BTV))
    )
    real_BT = batch[2] != PADDING
    # Each pass weighs half, so the sum is that of one pass over the batch.
    torch.testing.assert_close(ours.smoothed - ours.plain, 2.0 * divergence_BT[real_BT].sum() / 2)


def test_r_drop_is_for_training_alone() -> None:
    model, batch = make_model(dropout=0.3), make_batch()
    with mock.patch.object(model, "hidden", wraps=model.hidden) as hidden:
        watched = Objective(model, PADDING, smoothing=0.1, r_drop=1.0).eval()(*batch)
    ((source_BS, _),) = (call.args for call in hidden.call_args_list)
    assert torch.equal(source_BS, batch[0])  # once, and not twice over
    plain = Objective(model, PADDING, smoothing=0.1).eval()(*batch)
    torch.testing.assert_close(watched.smoothed, plain.smoothed)


@pytest.mark.parametrize("r_drop", [0.0, 0.5])
def test_bfloat16_computes_in_half_the_bits_and_keeps_whole_weights(r_drop: float) -> None:
    model, batch = make_model(), make_batch()
    single = Objective(model, PADDING, smoothing=0.1, r_drop=r_drop).train()(*batch)
    half = Objective(model, PADDING, smoothing=0.1, r_drop=r_drop, precision=torch.bfloat16).train()(*batch)
    half.smoothed.backward()
    assert half.smoothed.dtype == torch.float32
    assert not torch.equal(half.smoothed, single.smoothed)
    torch.testing.assert_close(half.smoothed, single.smoothed, atol=0.5, rtol=0.02)
    assert {gradient.dtype for gradient in gradients(model).values()} == {torch.float32}


def test_in_bfloat16_the_output_layer_is_too_and_its_weights_are_whole() -> None:
    model, batch = make_model(), make_batch()
    with mock.patch("dragoman.train.objective.chunked_loss", wraps=chunked_loss) as judge:
        Objective(model, PADDING, smoothing=0.1, precision=torch.bfloat16).train()(*batch)
    hidden_ND, weight_VD, *_ = judge.call_args.args
    assert (hidden_ND.dtype, weight_VD.dtype) == (torch.bfloat16, torch.float32)


@pytest.mark.parametrize("r_drop", [0.0, 0.5])
def test_in_bfloat16_gradients_stay_close(r_drop: float) -> None:
    model, batch = make_model(), make_batch()
    found = []
    for precision in (torch.float32, torch.bfloat16):
        model.zero_grad()
        Objective(model, PADDING, smoothing=0.1, r_drop=r_drop, precision=precision).train()(*batch).smoothed.backward()
        found.append(torch.cat([gradient.flatten() for gradient in gradients(model).values()]).clone())
    assert torch.cosine_similarity(*found, dim=0) > 0.99
