"""The model card: README.md of a bundle, in Markdown, written from what is known and silent about what is not."""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.config import ModelConfig


def model_card(
    *,
    directions: Sequence[str],
    model_config: ModelConfig,
    num_parameters: int,
    scorecard: Mapping[str, Any],
) -> str:
    """The card, from the model's shape and its scorecard, whose keys are all optional:

    data      [{"name", "pairs", "sha256", "licence", "attribution"}]
    licence   of the model
    scores    [{"metric", "score", "signature", "on"}]
    command   that made the model; several have a line each
    minutes   that it took
    samples   [{"source", "target"}], translations by this model
    behaviour {direction: [{"kind", "tried", "held"}]}
    limits    what it is bad at
    """
    arrow = ", ".join(direction.replace("-", " → ") for direction in directions)
    parts = [
        f"# Translates {arrow}",
        f"`dragoman translate --model FOLDER` runs it. It has {num_parameters:,} parameters: {shape(model_config)}.",
        _table("Scores", ("metric", "score", "on", "signature"), scorecard.get("scores", ())),
        _table("Data", ("name", "pairs", "licence", "attribution", "sha256"), scorecard.get("data", ())),
        _section("Licence", str(scorecard.get("licence", ""))),
        _section("Made by", _made_by(scorecard)),
        _section("Limits", str(scorecard.get("limits", ""))),
        _table("Behaviour", ("direction", "kind", "tried", "held"), _behaviour_rows(scorecard)),
        _table("Samples", ("source", "target"), scorecard.get("samples", ())),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def shape(config: ModelConfig) -> str:
    """A model's shape in a line: layers, widths, and what departs from the paper's model."""
    if config.architecture == "recurrent":
        return _recurrent_shape(config)
    default = ModelConfig()
    names = ("activation", "norm", "norm_order", "position", "attention_bias", "share_embeddings", "output_bias")
    departures = [
        f"{name.replace('_', ' ')} {str(value).lower()}"
        for name in names
        if (value := getattr(config, name)) != getattr(default, name)
    ]
    plain = (
        f"{config.encoder_layers} encoder and {config.decoder_layers} decoder layers, width {config.d_model}, "
        f"{config.num_heads} heads, feed-forward {config.d_ff}, {config.vocab_size:,} pieces"
    )
    return ", ".join([plain, *departures])


def _recurrent_shape(config: ModelConfig) -> str:
    looks = {
        "additive": f"additive attention of width {config.d_k}",
        "dot": f"dot-product attention of width {config.d_k}",
        "none": "no attention",
    }
    cell, layers = config.recurrent_cell.upper(), config.encoder_layers
    encoder = f"{layers} encoder layer{'' if layers == 1 else 's'}"
    matrices = "one embedding matrix" if config.share_embeddings else "three embedding matrices"
    return (
        f"recurrent, {encoder} of {config.d_ff} {cell} units each way, a decoder of {config.d_ff}, "
        f"{looks[config.recurrent_attention]}, embeddings of width {config.d_model}, {config.vocab_size:,} pieces, "
        f"{matrices}"
    )


def _made_by(scorecard: Mapping[str, Any]) -> str:
    command, minutes = scorecard.get("command", ""), scorecard.get("minutes")
    took = "" if minutes is None else f"\n\nin {float(minutes):.0f} minutes."
    lines = str(command).replace("\n", "\n    ")
    return f"    {lines}{took}" if command else ""


def _behaviour_rows(scorecard: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    behaviour = scorecard.get("behaviour", {})
    return [{"direction": direction, **row} for direction, rows in behaviour.items() for row in rows]


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n{text}" if text else ""


def _table(title: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Only the columns that some row fills."""
    filled = [column for column in columns if any(row.get(column) not in (None, "") for row in rows)]
    if not filled:
        return ""
    lines = [filled, ["-"] * len(filled), *([_cell(row.get(column, "")) for column in filled] for row in rows)]
    return _section(title, "\n".join(f"| {' | '.join(line)} |" for line in lines))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value).replace("|", "\\|").replace("\n", " ")
