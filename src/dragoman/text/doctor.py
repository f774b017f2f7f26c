"""The examination of a corpus before hours are spent on it: one pass over every file, in little memory.

    examine(train, valid, test) -> Diagnosis

Training drops pairs by the same `Filter` whose verdicts are counted here, and refuses or skips the same `Fault`s.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from dragoman.errors import DataError
from dragoman.recipe import CorpusConfig
from dragoman.text.characters import CharacterProbe
from dragoman.text.corpus import Fault, FaultKind, Pair, corpus_languages, read_records
from dragoman.text.diagnosis import (
    MAX_EXAMPLES,
    Diagnosis,
    Example,
    Finding,
    SetSummary,
    by_severity,
    counted,
    example_of,
    visible,
)
from dragoman.text.filter import Filter
from dragoman.text.lines import name_of, place
from dragoman.text.repeats import LeakProbe, RepeatProbe
from dragoman.text.shift import Shift, ShiftFinder
from dragoman.text.sizes import Pieces, SizeProbe

CHUNK_PAIRS = 2000
_LEAST_CORRELATION = 0.2

_FAULTS: dict[FaultKind, tuple[str, str]] = {
    "encoding": (
        "that are not UTF-8 text",
        "Find out their encoding and convert them, say with iconv -f LATIN1 -t UTF-8; no pair can be made of them.",
    ),
    "columns": (
        "with one column",
        "Put a tab between source and target. Two files that are aligned line by line go with --source and --target.",
    ),
    "record": ("that hold no JSON object with both sides", 'Write {"source": "..", "target": ".."}, an object a line.'),
    "line-counts": (
        "",
        "Find where a line is missing or too many: from there on every pair is wrong. A shift that is reported with "
        "this is the place to look.",
    ),
}


def examine(
    train: Sequence[CorpusConfig],
    valid: Sequence[CorpusConfig] = (),
    test: Sequence[CorpusConfig] = (),
    tokenizer: Pieces | None = None,
    max_pieces: int = Filter.max_pieces,
    max_ratio: float = Filter.max_ratio,
    progress: Callable[[int], None] = lambda pairs: None,
) -> Diagnosis:
    """Look at every pair of the corpora; `progress` hears how many have been read so far.

    Without a tokenizer, lengths in pieces are estimated from the number of bytes.
    """
    if not train:
        raise DataError("no corpus to look at: name a file of pairs, or two aligned files with --source and --target")
    leaks = LeakProbe()
    summaries, findings = {}, []
    num_read = 0
    # The training data come last: they are only asked for what the smaller sets hold.
    for name, corpora in (("valid", valid), ("test", test), ("train", train)):
        if not corpora:
            continue
        ward = _Ward(name, Filter(max_pieces=max_pieces, max_ratio=max_ratio), tokenizer)
        for corpus in corpora:
            for chunk in _chunks(read_records(corpus)):
                pairs = ward.look(corpus, chunk)
                if name == "train":
                    leaks.look(corpus.path, pairs)
                else:
                    leaks.watch(name, corpus.path, pairs)
                num_read += len(chunk)
                progress(num_read)
            ward.close(corpus)
        summaries[name] = ward.summary()
        findings.extend(ward.findings())
    return Diagnosis(
        languages=corpus_languages(train[0]),
        sets=tuple(summaries[name] for name in ("train", "valid", "test") if name in summaries),
        findings=by_severity([*findings, *leaks.findings()]),
        estimated=tokenizer is None,
    )


def _chunks(records: Iterator[Pair | Fault]) -> Iterator[list[Pair | Fault]]:
    while chunk := list(islice(records, CHUNK_PAIRS)):
        yield chunk


class _Ward:
    """The probes of one set, and its faults."""

    def __init__(self, name: str, filter: Filter, tokenizer: Pieces | None) -> None:
        self._name = name
        self._files: list[str] = []
        self._num_lines = 0
        self._faults: dict[FaultKind, list[Example]] = {}
        self._num_faults: Counter[FaultKind] = Counter()
        self._sizes = SizeProbe(filter, tokenizer)
        self._repeats = RepeatProbe()
        self._characters = CharacterProbe()
        self._shifts = ShiftFinder()
        self._shift_findings: list[Finding] = []

    def look(self, corpus: CorpusConfig, records: list[Pair | Fault]) -> list[Pair]:
        """Show the records to every probe; the pairs among them."""
        pairs = [record for record in records if isinstance(record, Pair)]
        if len(pairs) < len(records):
            self._note([record for record in records if isinstance(record, Fault)])
        self._num_lines += len(pairs)
        for probe in (self._sizes, self._repeats, self._characters):
            probe.look(corpus.path, pairs)
        self._shifts.look(pairs)
        return pairs

    def close(self, corpus: CorpusConfig) -> None:
        """The corpus has ended."""
        self._files.append(name_of(corpus.path) + (f" + {name_of(corpus.target_path)}" if corpus.target_path else ""))
        self._shift_findings.extend(_shift_findings(self._name, corpus, self._shifts))
        self._shifts = ShiftFinder()

    def _note(self, faults: list[Fault]) -> None:
        for fault in faults:
            self._num_faults[fault.kind] += 1
            self._num_lines += fault.kind != "line-counts"
            examples = self._faults.setdefault(fault.kind, [])
            if len(examples) < MAX_EXAMPLES:
                remark = "" if fault.kind == "columns" else fault.problem
                examples.append(Example(fault.place, visible(fault.excerpt), remark=remark))

    def summary(self) -> SetSummary:
        faults: dict[str, int] = {kind: count for kind, count in self._num_faults.items() if kind != "line-counts"}
        return SetSummary(
            name=self._name,
            files=tuple(self._files),
            pairs=self._num_lines,
            dropped={**faults, **self._sizes.dropped},
            source=self._sizes.summary(0),
            target=self._sizes.summary(1),
        )

    def findings(self) -> list[Finding]:
        found = []
        for kind, count in self._num_faults.items():
            what, advice = _FAULTS[kind]
            examples = tuple(self._faults[kind])
            if kind == "line-counts":
                what, examples = "; ".join(example.remark for example in examples), ()
            else:
                what = counted(count, "lines", what)
            share = count / max(1, self._num_lines) if examples else 0.0
            found.append(Finding(kind, "problem", self._name, what, count, share, advice, examples))
        for probe in (self._sizes, self._repeats, self._characters):
            found.extend(probe.findings(self._name, max(1, self._num_lines)))
        if self.summary().kept == 0:
            what = f"no pair of {self._name} is left when what cannot be used is dropped"
            advice = "Look at the reasons below, and at whether the file is what it should be."
            found.insert(0, Finding("nothing-left", "problem", self._name, what, self._num_lines, 1.0, advice))
        return self._shift_findings + found


def _shift_findings(name: str, corpus: CorpusConfig, finder: ShiftFinder) -> list[Finding]:
    shifts = finder.finish()
    num_pairs = max(1, finder.num_pairs)
    if shifts:
        count = sum(shift.pairs for shift in shifts)
        around = place(corpus.path, shifts[0].start.number)
        return [
            Finding(
                kind="shift",
                severity="problem",
                where=name,
                what=f"{counted(count, 'pairs')} out of step: {_describe(shifts[0])}",
                count=count,
                share=count / num_pairs,
                advice=f"Compare the sides around {around}, mend what is missing or too many there, and look again: "
                "nothing can be learned from pairs that are no translations.",
                examples=tuple(
                    example_of(corpus.path, shift.start, _describe(shift) if number else "")
                    for number, shift in enumerate(shifts[:MAX_EXAMPLES])
                ),
            )
        ]
    correlation = finder.length_correlation
    if correlation is not None and correlation < _LEAST_CORRELATION:
        return [
            Finding(
                kind="unaligned",
                severity="problem",
                where=name,
                what=f"long sentences do not have long translations in {name_of(corpus.path)} "
                f"(correlation of lengths {correlation:.2f}, in parallel text mostly above 0.7)",
                count=num_pairs,
                share=1.0,
                advice="See whether the two sides belong together and are in the same order.",
            )
        ]
    return []


def _describe(shift: Shift) -> str:
    lines = f"from about line {shift.start.number:,} to {shift.end.number:,}"
    if not shift.offset:
        return f"{lines} the sides do not seem to be translations of each other"
    direction = "below" if shift.offset > 0 else "above"
    return f"{lines} a translation stands {counted(abs(shift.offset), 'lines')} {direction} its sentence"
