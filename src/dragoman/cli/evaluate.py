"""`dragoman evaluate`: how well a model translates, in numbers that others can match."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from dragoman.cli._behaviour import evaluate_behaviour
from dragoman.cli._files import check_place, write_text
from dragoman.cli._idle import refuse_idle
from dragoman.cli._memory import memory_of, memory_option, warn_of_known
from dragoman.cli._scoring import (
    TOKENIZE,
    Model,
    named_languages,
    open_model,
    progress,
    read_test,
    score_options,
    scoring_options,
    stdout_console,
)
from dragoman.cli._tables import table
from dragoman.errors import ConfigError
from dragoman.text.languages import UNKNOWN

if TYPE_CHECKING:
    from rich.console import Console

    from dragoman.evaluate.evaluation import Evaluation
    from dragoman.evaluate.scores import ScoreOptions
    from dragoman.evaluate.testset import TestSet


@click.command("evaluate")
@click.option("--model", metavar="MODEL", help="A model's folder or name.")
@click.option(
    "--ensemble",
    multiple=True,
    metavar="MODEL",
    help="Another model with the same pieces, that has a say too; several times for several.",
)
@memory_option
@click.option("--hypotheses", metavar="FILE", help="Score this output, a line a sentence, instead of a model.")
@scoring_options
@click.option("--behaviour", is_flag=True, help="Instead of scoring, try careless text, unseen names ...")
@click.option("--record", "recorded", is_flag=True, help="Write what was found into the model's scorecard and card.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--report", metavar="FILE", type=click.Path(dir_okay=False), help="Write an HTML page as well.")
@click.option("--output", metavar="FILE", type=click.Path(dir_okay=False), help="Write the translations, a line each.")
def command(
    model: str | None,
    ensemble: tuple[str, ...],
    memory: str | None,
    hypotheses: str | None,
    test_file: str | None,
    source_file: str | None,
    target_file: str | None,
    source_language: str | None,
    target_language: str | None,
    limit: int | None,
    swap: bool,
    lowercase: bool,
    tokenize: str,
    beam: int | None,
    engine: str | None,
    compute_type: str | None,
    behaviour: bool,
    recorded: bool,
    as_json: bool,
    report: str | None,
    output: str | None,
) -> None:
    """Translate a test set and score the output: BLEU, chrF, chrF++ and TER as sacreBLEU gives them, with their
    signatures; scores by length; signs of trouble; speed.

    --behaviour alone needs no test set for a model from French or English: it tries text without full stops, capitals,
    accents, apostrophes, single words, several sentences, and numbers and names that nobody has seen.

    \b
    dragoman evaluate --model my-model --test pairs.tsv --report report.html
    dragoman evaluate --model my-model --behaviour --from fr --to en
    dragoman evaluate --hypotheses output.txt --test pairs.tsv
    """
    if bool(model) == bool(hypotheses):
        raise ConfigError("expected one thing to evaluate: give --model MODEL, or --hypotheses FILE")
    if hypotheses:
        refuse_idle(
            {
                "--beam": beam,
                "--ensemble": ensemble,
                "--memory": memory,
                "--engine": engine,
                "--compute-type": compute_type,
            },
            "does nothing to an output that exists already: leave it out, or give --model",
        )
    if hypotheses and (behaviour or recorded):
        raise ConfigError(f"{'--behaviour' if behaviour else '--record'} is about a model: give --model")
    if ensemble or memory:
        beside = "--ensemble names others" if ensemble else "--memory is beside it"
        refuse_idle({"--record": recorded}, f"is for the card of one model, {beside}: leave one of them out")
        refuse_idle({"--behaviour": behaviour}, f"tries one model, {beside}: leave one of them out")
    given = (test_file, source_file, target_file, source_language, target_language, limit, swap)
    if behaviour:
        refuse_idle(
            {"--report": report, "--output": output, "--lowercase": lowercase, "--tokenize": tokenize != TOKENIZE},
            "does nothing with --behaviour, which scores no output: leave one of them out",
        )
        if not (test_file or source_file):
            refuse_idle(
                {"--swap": swap, "--limit": limit, "--target": target_file},
                "is about a test set, and none is given: leave it out, or give --test",
            )
        test = read_test(*given) if test_file or source_file else None
        languages = test.languages if test else named_languages(source_language, target_language)
        wanted = None if test is None and languages == UNKNOWN else languages
        opened = open_model(model or "", languages=wanted, engine=engine, compute_type=compute_type, beam=beam)
        sentences = test.sources if test else ()
        evaluate_behaviour(opened, sentences, recorded=recorded, as_json=as_json)
        return
    check_place(report, "the report")
    check_place(output, "the output")
    scoring = score_options(lowercase, tokenize)
    test = read_test(*given)
    if hypotheses:
        evaluation = _evaluate_file(hypotheses, test, scoring, limit)
    else:
        recalled = memory_of(memory, *((None, None) if test.languages == UNKNOWN else test.languages))
        if recalled:
            warn_of_known(test.sources, recalled)
        opened = open_model(
            model or "",
            languages=test.languages,
            engine=engine,
            compute_type=compute_type,
            beam=beam,
            ensemble=ensemble,
            memory=recalled,
        )
        evaluation = _evaluate_model(opened, test, scoring, aligned=bool(report))
    try:
        _tell(evaluation, as_json=as_json, output=output, report=report)
    finally:  # a reader who closes the pipe, or a full disk, costs the record nothing
        if recorded:
            from dragoman.bundle.recording import record

            record(opened.bundle, scores=evaluation.for_card("-".join(opened.direction)))


def _tell(evaluation: Evaluation, *, as_json: bool, output: str | None, report: str | None) -> None:
    """Print the evaluation, then write its files: what cannot be written costs nothing of the rest."""
    if as_json:
        click.echo(json.dumps(evaluation.summary(), ensure_ascii=False, indent=1))
    else:
        print_evaluation(evaluation, stdout_console())
    if output:
        lines = (" ".join(line.hypothesis.split("\n")) for line in evaluation.lines)
        write_text(output, "the output", "".join(f"{line}\n" for line in lines))
        click.echo(f"output: {output}", err=as_json)
    if report:
        from dragoman.evaluate.report import report as page

        write_text(report, "the report", page(evaluation))
        click.echo(f"report: {report}", err=as_json)


def print_evaluation(evaluation: Evaluation, console: Console) -> None:
    """The evaluation for a person."""
    from rich.text import Text

    from dragoman.evaluate.quality import MEANINGS

    console.print(Text(f"{evaluation.system.name} on {evaluation.test_set}", style="bold"))
    facts = [("pairs", f"{evaluation.num_pairs:,}"), *evaluation.system.facts()]
    console.print(Text(", ".join(f"{key} {value}" for key, value in facts), style="dim"))
    console.print()
    scores = table(("score", "left"), ("", "right"), ("signature", "left"))
    for score in evaluation.scores:
        scores.add_row(score.name, f"{score.value:.2f}", score.signature)
    console.print(scores)
    console.print()
    buckets = table(("words in the source", "left"), ("pairs", "right"), ("BLEU", "right"), ("chrF", "right"))
    for bucket in evaluation.buckets:
        buckets.add_row(bucket.length, f"{bucket.num_pairs:,}", f"{bucket.bleu:.1f}", f"{bucket.chrf:.1f}")
    console.print(buckets)
    console.print()
    signs = table(("sign of trouble", "left"), ("lines", "right"), ("share", "right"), ("", "left"))
    for rate in evaluation.rates:
        signs.add_row(rate.kind, f"{rate.count:,}", f"{100 * rate.share:.2f} %", MEANINGS[rate.kind])
    console.print(signs)
    if evaluation.speed is not None:
        speed = evaluation.speed
        console.print()
        console.print(
            f"{evaluation.num_warned:,} lines with a warning; {speed.sentences_per_second:,.1f} sentences/s, "
            f"{speed.target_words_per_second:,.0f} words of output/s, split at white space"
        )


def _evaluate_file(path: str, test: TestSet, scoring: ScoreOptions, limit: int | None) -> Evaluation:
    from dragoman.evaluate.evaluation import System
    from dragoman.evaluate.scores import evaluate_output
    from dragoman.evaluate.testset import read_hypotheses
    from dragoman.text.lines import name_of

    return evaluate_output(read_hypotheses(path, test, limit or 0), test, scoring, system=System(name=name_of(path)))


def _evaluate_model(model: Model, test: TestSet, scoring: ScoreOptions, aligned: bool) -> Evaluation:
    from dragoman.evaluate.report import SHOWN
    from dragoman.evaluate.scores import add_alignments, evaluate_model

    with progress(f"translating with {model.system.name}", len(test)) as done:
        evaluation = evaluate_model(model, test, scoring, system=model.system, progress=done)
    return add_alignments(evaluation, replace(model, align=True), SHOWN) if aligned else evaluation
