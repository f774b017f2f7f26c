"""A diagnosis as one HTML file: no script, nothing fetched, light or dark as the reader's system is."""

from html import escape

from dragoman.text.diagnosis import REASONS, Diagnosis, Example, Finding, SetSummary, SideSummary, percent

_STYLE = """
:root { color-scheme: light dark; --paper: #fbfaf7; --card: #ffffff; --ink: #1f2328; --faint: #656d76; --line: #dcd9d0;
  --problem: #b3261e; --warning: #8a5a00; --note: #1f5fa8; --good: #1a7f4b; --bar: #5b8def; --bar2: #d08c60; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #15171a; --card: #1d2024; --ink: #e6e6e3; --faint: #9aa2ab; --line: #33373d;
    --problem: #ff8a80; --warning: #f0b64d; --note: #7fb2f5; --good: #63d297; --bar: #6f9bf2; --bar2: #d99a70; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 60rem; padding: 2.5rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2.5rem 0 .75rem; }
p { margin: .35rem 0; } .faint { color: var(--faint); }
.verdict { display: inline-block; margin-top: .75rem; padding: .4rem .9rem; border-radius: 999px; font-weight: 600;
  border: 1.5px solid currentColor; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .4rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; color: var(--faint); }
td.files { white-space: normal; overflow-wrap: anywhere; text-align: left; }
.card { background: var(--card); border: 1px solid var(--line); border-left: 5px solid currentColor; border-radius: 8px;
  padding: .8rem 1.1rem; margin: .8rem 0; }
.card > * { color: var(--ink); } .card .tag { color: inherit; }
.problem { color: var(--problem); } .warning { color: var(--warning); } .note { color: var(--note); }
.good { color: var(--good); }
.tag { font-size: .8rem; font-weight: 700; letter-spacing: .04em; text-transform: uppercase; }
.what { font-weight: 600; overflow-wrap: anywhere; }
.example { margin: .6rem 0 0; padding: .5rem .8rem; border-radius: 6px; background: var(--paper); font-size: .92rem; }
.example p { margin: .1rem 0; overflow-wrap: anywhere; }
.place { font: .82rem ui-monospace, monospace; color: var(--faint); }
.bars { display: grid; grid-template-columns: max-content 1fr max-content; gap: .25rem .8rem; align-items: center;
  font-variant-numeric: tabular-nums; }
.bar { height: .7rem; border-radius: 3px; min-width: 1px; background: var(--bar); }
.bar.target { background: var(--bar2); margin-top: 2px; } .key { display: inline-block; width: .8rem; height: .8rem;
  border-radius: 3px; background: var(--bar); } .key.target { background: var(--bar2); margin-left: 1rem; }
@media print { body { max-width: none; } .card { break-inside: avoid; } }
"""


def report(diagnosis: Diagnosis) -> str:
    """The whole page."""
    source, target = diagnosis.languages
    title = f"Corpus report: {source} to {target}"
    mood = "problem" if diagnosis.problems else "good"
    train = diagnosis.sets[0]
    findings = "\n".join(map(_finding, diagnosis.findings)) or '<p class="faint">Nothing found.</p>'
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p class="faint">Made by <code>dragoman doctor</code>.{_predictions(diagnosis)}</p>
<p class="verdict {mood}">{escape(diagnosis.verdict)}</p>
</header>
<h2>Findings</h2>
{findings}
<h2>Sets</h2>
{_sets(diagnosis)}
{_dropped(diagnosis)}
<h2>Sentence lengths in train, in words</h2>
<p class="faint"><span class="key"></span> {escape(source)} <span class="key target"></span> {escape(target)}</p>
{_lengths(train)}
</body>
</html>
"""


def _predictions(diagnosis: Diagnosis) -> str:
    return f" As planned, {diagnosis.prediction}." if diagnosis.prediction else ""


def _finding(finding: Finding) -> str:
    share = f" · {percent(finding.share)}" if finding.share < 1 else ""
    return f"""<section class="card {finding.severity}">
<p class="tag">{finding.severity} · {escape(finding.where)}{share}</p>
<p class="what">{escape(finding.what)}</p>
<p>{escape(finding.advice)}</p>
{"".join(map(_example, finding.examples))}
</section>"""


def _example(example: Example) -> str:
    sides = "".join(f'<p dir="auto">{escape(side)}</p>' for side in (example.source, example.target) if side)
    remark = f'<p class="faint">{escape(example.remark)}</p>' if example.remark else ""
    return f'<div class="example"><p class="place">{escape(example.place)}</p>{sides}{remark}</div>'


def _sets(diagnosis: Diagnosis) -> str:
    languages = [escape(language) for language in diagnosis.languages]
    heads = ["set", "pairs", "kept"]
    for language in languages:
        heads += [f"{language} words", "median", "95 %"] + ([] if diagnosis.estimated else ["pieces a word"])
    rows = []
    for summary in diagnosis.sets:
        cells = [escape(summary.name), f"{summary.pairs:,}", f"{summary.kept:,}"]
        for side in (summary.source, summary.target):
            cells += [f"{side.words:,}", f"{side.median_words:,}", f"{side.percentile95_words:,}", *_pieces(side)]
        rows.append("".join(f"<td>{cell}</td>" for cell in cells))
        files = escape(", ".join(summary.files))
        rows.append(f'<td class="files faint" colspan="{len(heads)}">{files}</td>')
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    head = "".join(f"<th>{head}</th>" for head in heads)
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def _pieces(side: SideSummary) -> list[str]:
    return [] if side.pieces_per_word is None else [f"{side.pieces_per_word:.2f}"]


def _dropped(diagnosis: Diagnosis) -> str:
    rows = []
    for summary in diagnosis.sets:
        for reason, count in summary.dropped.items():
            width = 100 * count / summary.pairs
            rows.append(
                f"<span>{escape(summary.name)}: {escape(REASONS[reason])}</span>"
                f'<div><div class="bar" style="width:{width:.2f}%"></div></div>'
                f"<span>{count:,} · {percent(count / summary.pairs)}</span>"
            )
    if not rows:
        return "<h2>Dropped</h2><p>Nothing would be dropped.</p>"
    how = " Lengths are estimated: no tokenizer was given." if diagnosis.estimated else ""
    return (
        f'<h2>Dropped</h2><p class="faint">Training leaves these out.{how}</p><div class="bars">{"".join(rows)}</div>'
    )


def _lengths(summary: SetSummary) -> str:
    sides = (summary.source.histogram, summary.target.histogram)
    most = max((count for side in sides for count in side), default=1)
    rows = []
    for index in range(max(map(len, sides))):
        counts = [side[index] if index < len(side) else 0 for side in sides]
        low, high = 2**index, 2 ** (index + 1) - 1
        bars = "".join(
            f'<div class="bar{name}" style="width:{100 * count / most:.2f}%"></div>'
            for count, name in zip(counts, ("", " target"), strict=True)
        )
        label = f"{low}" if low == high else f"{low}–{high}"
        rows.append(f"<span>{label}</span><div>{bars}</div><span>{counts[0]:,} / {counts[1]:,}</span>")
    return f'<div class="bars">{"".join(rows)}</div>'
