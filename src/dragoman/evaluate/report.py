"""An evaluation as one HTML file that needs nothing else: no network, no script, light and dark, narrow and wide.

Everything that comes from outside (sentences, names, warnings) goes through `escape`.
"""

import string
from html import escape
from importlib.resources import files

from dragoman import __version__
from dragoman.evaluate.evaluation import Evaluation, Line, Speed
from dragoman.evaluate.plots import MOST_DOTS, Bar, bars, histogram, scatter
from dragoman.evaluate.quality import MEANINGS, Bucket, rank_correlation
from dragoman.evaluate.threads import closest, marked, threads
from dragoman.text.metrics import Score

SHOWN = 12
"""How many of the best lines, and of the worst."""

_ABOUT_WORST = (
    "The lines of lowest chrF. A low score is not always a bad translation: a sentence can be right and share little "
    "with its reference."
)
_ABOUT_BEST = "The lines of highest chrF; of equally good ones the longer."


def report(evaluation: Evaluation, shown: int = SHOWN) -> str:
    """The whole page."""
    facts = [("test set", evaluation.test_set), ("pairs", f"{evaluation.num_pairs:,}"), *evaluation.system.facts()]
    body = [
        _scores(evaluation.scores),
        _plots(evaluation),
        _signs(evaluation),
        _speed(evaluation.speed),
        _lines("Where it goes wrong", _ABOUT_WORST, evaluation.worst(shown)),
        _lines("Where it does well", _ABOUT_BEST, evaluation.best(shown)),
    ]
    template = string.Template(files("dragoman.evaluate").joinpath("report.html").read_text(encoding="utf-8"))
    return template.substitute(
        version=__version__,
        title=escape(f"{evaluation.system.name} on {evaluation.test_set}"),
        facts="".join(f"<li>{escape(key)} <b>{escape(value)}</b></li>" for key, value in facts),
        body="\n".join(filter(None, body)),
    )


def _scores(scores: tuple[Score, ...]) -> str:
    cards = "".join(
        f'<div class="score"><dt>{escape(score.name)}{" · lower is better" if score.name == "TER" else ""}</dt>'
        f'<dd class="figure">{score.value:.1f}</dd><dd><code>{escape(score.signature)}</code></dd></div>'
        for score in scores
    )
    return f'<section><h2>Scores</h2><dl class="scores">{cards}</dl></section>'


def _plots(evaluation: Evaluation) -> str:
    rows = [
        Bar(bucket.length, f"{bucket.num_pairs:,} pair{'' if bucket.num_pairs == 1 else 's'}", bucket.bleu)
        for bucket in evaluation.buckets
    ]
    figures = [
        _figure(
            bars(rows, "BLEU by length of the source", "words in the source"),
            "BLEU of short and of long sources, each taken together. A bar of few pairs says little.",
            _numbers(evaluation.buckets),
        ),
        _figure(
            histogram([line.chrf for line in evaluation.lines], "how many lines have which chrF", "chrF of a line"),
            "How many lines reach which chrF. A hump at the left is a kind of sentence that fails.",
        ),
    ]
    points = [(line.confidence, line.chrf) for line in evaluation.lines if line.confidence is not None]
    if points:
        rho = rank_correlation([x for x, _ in points], [y for _, y in points])
        sampled = f" Not every one of {len(points):,} dots is drawn." if len(points) > MOST_DOTS else ""
        figures.append(
            _figure(
                scatter(points, "chrF against confidence", "confidence of the model"),
                f"A dot a line; the black line is the mean. Rank correlation {rho:.2f}: at 1 the model knows its "
                f"mistakes, at 0 its confidence tells nothing.{sampled}",
            )
        )
    return f'<section><h2>Beyond the average</h2><div class="plots">{"".join(figures)}</div></section>'


def _figure(plot: str, caption: str, more: str = "") -> str:
    return f"<figure>{plot}<figcaption>{escape(caption)}{more}</figcaption></figure>"


def _numbers(buckets: tuple[Bucket, ...]) -> str:
    """The buckets as a table, for whoever cannot see a plot or wants the digits."""
    rows = "".join(
        f'<tr><th>{bucket.length}</th><td class="number">{bucket.num_pairs:,}</td>'
        f'<td class="number">{bucket.bleu:.1f}</td><td class="number">{bucket.chrf:.1f}</td></tr>'
        for bucket in buckets
    )
    return (
        f'<details><summary>the numbers</summary><table><thead><tr><th>words</th><th class="number">pairs</th>'
        f'<th class="number">BLEU</th><th class="number">chrF</th></tr></thead><tbody>{rows}</tbody></table></details>'
    )


def _signs(evaluation: Evaluation) -> str:
    rows: list[tuple[str, str, int]] = [(rate.kind, MEANINGS[rate.kind], rate.count) for rate in evaluation.rates]
    if evaluation.speed is not None:
        rows.append(("warned", "the translator itself gave a warning", evaluation.num_warned))
    table = "".join(
        f'<tr><th>{escape(name)}</th><td>{escape(meaning)}</td><td class="number">{count:,}</td>'
        f'<td class="number">{100 * count / evaluation.num_pairs:.2f} %</td></tr>'
        for name, meaning, count in rows
    )
    return (
        f"<section><h2>Signs of trouble</h2><p>Told by the texts alone, whatever their score.</p>"
        f'<table><thead><tr><th>sign</th><th>what it means</th><th class="number">lines</th>'
        f'<th class="number">share</th></tr></thead><tbody>{table}</tbody></table></section>'
    )


def _speed(speed: Speed | None) -> str:
    if speed is None:
        return ""
    return (
        f"<section><h2>Speed</h2><p>{speed.sentences_per_second:,.1f} sentences and "
        f"{speed.target_words_per_second:,.0f} words a second; {speed.seconds:,.1f} seconds in all. "
        f"Words are those of the output, split at white space. Another machine gives other numbers.</p></section>"
    )


def _lines(title: str, about: str, lines: list[Line]) -> str:
    if not lines:
        return ""
    key = (
        "<del>Dotted</del>: in the reference, not in the output. <ins>Wavy</ins>: in the output, not in the reference."
    )
    articles = "".join(map(_line, lines))
    return f"<section><h2>{escape(title)}</h2><p>{escape(about)}</p><p>{key}</p>{articles}</section>"


def _line(line: Line) -> str:
    about = [f"line {line.number:,}", f"chrF {line.chrf:.1f}"]
    if line.confidence is not None:
        about.append(f"confidence {line.confidence:.2f}")
    nearest = closest(line.hypothesis, line.references)
    reference = line.references[nearest]
    others = [text for i, text in enumerate(line.references) if i != nearest]
    rows = [
        ("source", escape(line.source), ""),
        ("reference", marked(reference, line.hypothesis, "del"), ""),
        (
            "output",
            marked(line.hypothesis, reference, "ins") or "(nothing)",
            "" if line.hypothesis.strip() else "other",
        ),
        *(("also right", escape(text), "other") for text in others),
    ]
    texts = "".join(f'<dt>{name}</dt><dd class="{style}" dir="auto">{text}</dd>' for name, text, style in rows)
    notes = [*(MEANINGS[kind] for kind in line.suspicions), *line.warnings]
    head = [f"<span>{item}</span>" for item in about]
    head += [f'<span class="warning" dir="auto">{escape(note)}</span>' for note in notes]
    drawn = "".join(map(threads, line.parts))
    return f'<article class="pair"><div class="about">{"".join(head)}</div><dl>{texts}</dl>{drawn}</article>'
