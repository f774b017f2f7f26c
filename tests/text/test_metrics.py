"""Our scores are sacreBLEU's, and each says how it was made."""

import subprocess
import sys

import pytest
import sacrebleu

from dragoman.errors import ConfigError, DataError, MissingExtraError
from dragoman.text.metrics import METRICS, Score, corpus_scores, reference_streams, sentence_chrf

HYPOTHESES = ["The cat sat on a mat.", "It rains in the old town today", "no idea", "A quick Brown fox, jumps!", ""]
REFERENCES = ["The cat sat on the mat.", "It is raining in the old town today.", "No idea!", "a quick brown fox", "yes"]
SEVERAL = [
    ("The cat sat on the mat.", "A cat sat on a mat."),
    ("Rain.",),
    ("No idea!", "no", "no clue"),
    ("fox",),
    ("y",),
]


def test_the_scores_are_those_of_sacrebleu() -> None:
    bleu, chrf, chrf_plus, ter = corpus_scores(HYPOTHESES, REFERENCES, metrics=METRICS)
    assert bleu.value == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert chrf.value == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert chrf_plus.value == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2).score
    assert ter.value == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score
    assert len({bleu.value, chrf.value, chrf_plus.value, ter.value}) == 4
    assert [score.name for score in (bleu, chrf, chrf_plus, ter)] == ["BLEU", "chrF2", "chrF2++", "TER"]


def test_signatures_say_how_a_score_was_made() -> None:
    version = f"version:{sacrebleu.__version__}"
    bleu, chrf = corpus_scores(HYPOTHESES, REFERENCES)
    assert bleu.signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|{version}"
    assert chrf.signature == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|{version}"
    lower, lower_chrf = corpus_scores(HYPOTHESES, REFERENCES, lowercase=True, tokenize="intl")
    assert lower.signature == f"nrefs:1|case:lc|eff:no|tok:intl|smooth:exp|{version}"
    assert "case:lc" in lower_chrf.signature
    assert lower.value > bleu.value


def test_a_score_prints_with_its_signature() -> None:
    assert str(Score("BLEU", 41.26, "nrefs:1|tok:13a")) == "BLEU 41.3 (nrefs:1|tok:13a)"


def test_lines_may_have_different_numbers_of_references() -> None:
    streams = [
        ["The cat sat on the mat.", "Rain.", "No idea!", "fox", "y"],
        ["A cat sat on a mat.", None, "no", None, None],
        [None, None, "no clue", None, None],
    ]
    assert reference_streams(HYPOTHESES, SEVERAL) == streams
    (bleu,) = corpus_scores(HYPOTHESES, SEVERAL, metrics=["bleu"])
    assert bleu.value == sacrebleu.BLEU().corpus_score(HYPOTHESES, streams).score
    assert "nrefs:var" in bleu.signature


def test_the_chrf_of_a_line_is_that_of_its_closest_reference() -> None:
    scores = sentence_chrf(HYPOTHESES, SEVERAL)
    alone = [[sentence_chrf([h], [r])[0] for r in line] for h, line in zip(HYPOTHESES, SEVERAL, strict=True)]
    assert scores == [max(line) for line in alone]
    assert sentence_chrf(["No idea!"], ["No idea!"]) == [100.0]
    assert sentence_chrf(["ABC"], ["abc"]) == [0.0]
    assert sentence_chrf(["ABC"], ["abc"], lowercase=True) == [100.0]


@pytest.mark.parametrize("score", [corpus_scores, sentence_chrf])
def test_different_numbers_of_lines_are_refused_with_both_numbers(score: object) -> None:
    with pytest.raises(DataError, match="5 translations and 3 references, expected as many: line i of one must"):
        score(HYPOTHESES, REFERENCES[:3])  # type: ignore[operator]


def test_nothing_at_all_is_refused() -> None:
    with pytest.raises(DataError, match="0 translations and 0 references, expected at least one line of each"):
        corpus_scores([], [])


def test_a_line_without_a_reference_is_refused_by_its_number() -> None:
    with pytest.raises(DataError, match="line 2 has no reference, expected at least one"):
        corpus_scores(["a", "b", "c"], [["a"], [], ["c"]])


def test_an_unknown_metric_or_tokenizer_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"unknown metric 'blue': did you mean 'bleu'\?"):
        corpus_scores(["a"], ["a"], metrics=["blue"])  # type: ignore[list-item]
    with pytest.raises(ConfigError, match=r"tokenize is '13b': did you mean '13a'\?"):
        corpus_scores(["a"], ["a"], tokenize="13b")


def test_a_tokenizer_that_cannot_be_had_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "MeCab", None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    with pytest.raises(ConfigError, match="tokenize = 'ja-mecab' needs more than sacreBLEU brings: ") as refusal:
        corpus_scores(["a"], ["a"], tokenize="ja-mecab")
    assert "\n" not in str(refusal.value)


def test_without_sacrebleu_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "sacrebleu"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [_NoSacrebleu(), *sys.meta_path])
    with pytest.raises(MissingExtraError, match=r"scoring translations needs sacrebleu: pip install .*\[train\]"):
        corpus_scores(["a"], ["a"])


class _NoSacrebleu:
    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] == "sacrebleu":
            raise ModuleNotFoundError(f"No module named {name!r}", name="sacrebleu")


def test_scoring_needs_neither_torch_nor_sacrebleu_to_be_imported() -> None:
    code = (
        "import sys, dragoman.text.suspect, dragoman.evaluate.compare, dragoman.evaluate.report\n"
        "print('torch' in sys.modules, 'sacrebleu' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["False", "False"]
