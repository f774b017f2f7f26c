"""`dragoman train`: from parallel text to a model folder."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli._idle import refuse_idle
from dragoman.errors import ConfigError, DataError, require

if TYPE_CHECKING:
    from dragoman.recipe import Recipe


class _HelpWithSettings(click.Command):
    """Help that ends in every setting that `--set` and a recipe file take, read off the dataclasses."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from dragoman.recipe import Recipe
        from dragoman.settings import describe

        with formatter.section("Settings, for --set and recipe files"):
            rows = describe(Recipe)
            formatter.write_dl([(key, f"{help} [{default}]" if default else help) for key, default, help in rows])


@click.command(name="train", cls=_HelpWithSettings, short_help="Train a translator on parallel text.")
@click.argument("corpora", nargs=-1, metavar="[CORPUS]...")
@click.option("--source", help="The source side, when the two sides are in two files.")
@click.option("--target", help="The target side, line by line with --source.")
@click.option("--valid", multiple=True, metavar="CORPUS", help="Validate on this, and not on pairs held out.")
@click.option("--test", multiple=True, metavar="CORPUS", help="Make sure that nothing of this is in the training data.")
@click.option("--from", "source_language", metavar="LANG", help="Language of the source side.")
@click.option("--to", "target_language", metavar="LANG", help="Language of the target side.")
@click.option("--swap", is_flag=True, help="Take the pairs the other way round: the right side is the source.")
@click.option("--both-ways", is_flag=True, help="One model for both directions.")
@click.option("--output", type=click.Path(path_type=Path), metavar="FOLDER", help="Where the model goes.")
@click.option("--recipe", "recipe_path", type=click.Path(path_type=Path), metavar="FILE", help="A TOML recipe.")
@click.option("--preset", metavar="NAME", help="A model shape by name: base, big, small, tiny, rnn-attention, ...")
@click.option("--budget", metavar="TIME", help="Plan a run that ends well within 45m, 2h, 1d of this machine.")
@click.option("--plan", "plan_only", is_flag=True, help="Print the plan, with its reasons, and stop.")
@click.option("--resume", is_flag=True, help="Go on with the run in --output, from its last checkpoint.")
@click.option("--init", metavar="MODEL", help="Go on from this model's weights, with its pieces (fine-tuning).")
@click.option("--teacher", "teachers", multiple=True, metavar="MODEL", help="Learn what this model thinks, too.")
@click.option("--lora", type=int, metavar="RANK", help="Fine-tune low-rank adapters only; merged when saved.")
@click.option("--shard", is_flag=True, help="Split the model over torchrun's ranks (FSDP2).")
@click.option("--seed", type=int, help="Of everything that is drawn.")
@click.option("--strict", is_flag=True, help="Stop if the doctor finds a problem in the data.")
@click.option("--tensorboard", is_flag=True, help="Write TensorBoard files to FOLDER/tensorboard.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Any setting: --set train.clip_norm=0.5")
@click.option("--json", "as_json", is_flag=True, help="Print the result (with --plan: the plan) as JSON.")
def command(**options: Any) -> None:
    """Train a translator on CORPUS: TSV, TMX or JSON lines, plain or compressed, or - for standard input.

    The data are looked over, a model is planned for them, for this machine and for the time that --budget gives; the
    folder in --output can be used from the first validation on. Ctrl-C saves; --resume goes on as if never stopped.
    """
    require("torch", "train", "training")
    from dragoman.train.finish import TrainingResult
    from dragoman.train.hardware import reuse_memory
    from dragoman.train.request import Request
    from dragoman.train.run import train_model

    request = Request(
        recipe=_recipe(options),
        output=_output(options),
        budget_seconds=_budget(options["budget"]),
        keep_shape=_has_shape(options),
        asked=_asked(options),
        init=options["init"] or "",
        teachers=options["teachers"],
        strict=options["strict"],
        tensorboard=options["tensorboard"],
    )
    reuse_memory()
    outcome = train_model(request, resume=options["resume"], plan_only=options["plan_only"])
    if options["as_json"]:
        click.echo(json.dumps(outcome.to_mapping(), ensure_ascii=False))
    if isinstance(outcome, TrainingResult) and outcome.reason == "interrupted":
        sys.exit(130)


def _recipe(options: dict[str, Any]) -> Recipe:
    """The recipe that file, options and assignments make together; later ones win."""
    from dragoman.config import preset
    from dragoman.recipe import Recipe
    from dragoman.settings import fill, override, read, to_mapping
    from dragoman.text.corpus import corpus_of, format_of

    path = options["recipe_path"]
    values: dict[str, Any] = read(path) if path else {}
    for section, table in values.items():
        if not isinstance(table, dict):
            raise ConfigError(
                f"{path}: {section} is {table!r}, expected a section, say [train], with settings below it"
            )
    if options["preset"]:
        chosen = preset(options["preset"])
        values["model"] = without_default_widths(to_mapping(chosen.model))
        values.setdefault("train", {})["label_smoothing"] = chosen.label_smoothing
    languages = _languages(options)
    data = values.setdefault("data", {})

    def corpora(arguments: tuple[str, ...]) -> list[dict[str, Any]]:
        chosen = [corpus_of(argument, languages) for argument in arguments]
        return [to_mapping(replace(one, swap=options["swap"] and format_of(one) == "TSV")) for one in chosen]

    given = corpora(options["corpora"])
    if not any(corpus["swap"] for corpus in given):
        refuse_idle({"--swap": options["swap"]}, "turns TSV round: name a CORPUS of that form (in a recipe: swap)")
    if not (given or options["source"] or options["valid"] or options["test"]):
        refuse_idle({"--from": languages}, "names the languages of CORPUS: name one (in a recipe, languages = 'fr-en')")
    if options["init"]:
        _refuse_another_shape(options)
    if options["init"] or options["teachers"]:
        _refuse_other_pieces(options)
    if options["resume"] and not (given or options["source"] or options["recipe_path"]):
        refuse_idle(
            {
                f"--{name.replace('_', '-')}": options[name]
                for name in ("preset", "valid", "test", "both_ways", "strict")
            },
            "is of a new run, and --resume goes on with one as it was begun: leave it out",
        )
    if bool(options["source"]) != bool(options["target"]):
        raise DataError("--source and --target go together: the two sides, aligned line by line")
    if options["source"]:
        given.append({"path": options["source"], "target_path": options["target"], "languages": languages})
    if given:
        data["train"] = given
    for name in ("valid", "test"):
        if options[name]:
            data[name] = corpora(options[name])
    train = values.setdefault("train", {})
    for name in ("seed", "lora"):
        if options[name] is not None:
            train[name] = options[name]
    if options["shard"]:
        train["shard"] = True
    recipe = fill(Recipe, override(values, options["assignments"]))
    return _both_ways(recipe) if options["both_ways"] else recipe


def _both_ways(recipe: Recipe) -> Recipe:
    """What is learned both ways is validated both ways."""
    data = recipe.data
    train, valid = (tuple(replace(corpus, both_ways=True) for corpus in of) for of in (data.train, data.valid))
    return replace(recipe, data=replace(data, train=train, valid=valid))


def without_default_widths(model: dict[str, Any]) -> dict[str, Any]:
    """Leave d_k and d_v open where they follow from d_model and num_heads, so that `--set` of those moves them too."""
    default = model["d_model"] / model["num_heads"]
    return {key: value for key, value in model.items() if key not in ("d_k", "d_v") or value != default}


def _languages(options: dict[str, Any]) -> str:
    source, target = options["source_language"], options["target_language"]
    if bool(source) != bool(target):
        raise ConfigError("--from and --to go together: the languages of the two sides")
    return "-".join(language.replace("-", "_") for language in (source, target)) if source else ""


def _output(options: dict[str, Any]) -> Path:
    if options["output"] is None:
        if not options["plan_only"]:
            raise ConfigError("say where the model goes: --output models/mine")
        return Path("models/unnamed")
    return Path(options["output"])


def _budget(text: str | None) -> float:
    from dragoman.train.plan import parse_duration

    return parse_duration(text) if text else 0.0


def _assigned(assignments: tuple[str, ...]) -> tuple[str, ...]:
    """The keys of KEY=VALUE."""
    return tuple(assignment.partition("=")[0].strip() for assignment in assignments)


def _asked(options: dict[str, Any]) -> tuple[str, ...]:
    """The settings that a plan keeps as they are: those that were assigned, and some of a recipe and a preset."""
    given = [f"train.{name}" for name in ("seed", "lora") if options[name] is not None]
    given += ["train.batch_tokens", "train.decay_share"] if options["recipe_path"] else []
    given += ["model.dropout"] if options["recipe_path"] or options["preset"] else []
    return (*_assigned(options["assignments"]), *given)


def _refuse_another_shape(options: dict[str, Any]) -> None:
    """With --init shape and pieces are that model's; only what is dropped out may be another."""
    shapes = [k for k in _assigned(options["assignments"]) if k.startswith("model.") and not k.endswith("dropout")]
    refuse_idle(
        {"--preset": options["preset"], **{f"--set {key}": True for key in shapes}},
        "would be another model than --init names, which has its shape and pieces already: leave it out",
    )


def _refuse_other_pieces(options: dict[str, Any]) -> None:
    """A model that goes on from another has its pieces, and a student those of its first teacher."""
    kinds = ("tokenizer.kind", "tokenizer.vocab_size", "tokenizer.lowercase")
    refuse_idle(
        {f"--set {key}": True for key in _assigned(options["assignments"]) if key in kinds},
        f"would be other pieces than {'--init' if options['init'] else '--teacher'} has, which are kept: leave it out",
    )


def _has_shape(options: dict[str, Any]) -> bool:
    """Whether it is said how large the model is to be, so that nothing is left to plan."""
    from dragoman.settings import read

    path = options["recipe_path"]
    told = [f"model.{key}" for key in read(path).get("model", {})] if path else []
    shape = {"architecture", "d_model", "d_ff", "num_heads", "encoder_layers", "decoder_layers"}
    keys = (*told, *_assigned(options["assignments"]))
    return bool(options["preset"]) or any(key.removeprefix("model.") in shape for key in keys)
