"""`evaluate_model` and `evaluate_output`: what is found, in which order, and as JSON."""

import json

import pytest
from fake_translator import FakeLink, FakeSentence, FakeTranslation, FakeTranslator

from dragoman.errors import DataError
from dragoman.evaluate.evaluation import Link, Part, System
from dragoman.evaluate.scores import ScoreOptions, add_alignments, evaluate_model, evaluate_output
from dragoman.evaluate.testset import TestSet
from dragoman.text.metrics import METRICS, corpus_scores

TEST = TestSet(
    "pairs.tsv",
    ("Le chat dort.", "Il pleut sur la vieille ville.", "Non !", "Où est la gare, Tom ?", "Je ne sais pas."),
    (
        ("The cat sleeps.", "The cat is sleeping."),
        ("It rains on the old town.",),
        ("No!",),
        ("Where is it?",),
        ("Eh?",),
    ),
)
OUTPUTS = ("The cat is sleeping.", "It rains on the town.", "", "where where where where", "I do not know.")
FAKE = System(name="fake", engine="ctranslate2", compute_type="int8", beam=4, weights_hash="f00d")


def translator(outputs: tuple[str, ...] = OUTPUTS) -> FakeTranslator:
    answers = {
        source: FakeTranslation(
            output,
            confidence=i / 10,
            sentences=(FakeSentence(source, output, (FakeLink(0, 1, 0.75),)),),
            warnings=("cut in two",) if i == 3 else (),
        )
        for i, (source, output) in enumerate(zip(TEST.sources, outputs, strict=True))
    }
    return FakeTranslator(answers)


def test_a_model_scores_as_its_output_does() -> None:
    model = evaluate_model(translator(), TEST, system=FAKE)
    output = evaluate_output(OUTPUTS, TEST, system=FAKE)
    assert model.scores == output.scores == tuple(corpus_scores(OUTPUTS, TEST.references, metrics=METRICS))
    assert model.buckets == output.buckets
    assert model.rates == output.rates
    assert output.speed is None
    assert model.speed is not None
    assert model.speed.sentences_per_second == pytest.approx(5 / model.speed.seconds)
    assert model.speed.target_words_per_second == pytest.approx(17 / model.speed.seconds)


def test_lines_keep_order_and_everything_the_translator_said() -> None:
    evaluation = evaluate_model(translator(), TEST, system=FAKE)
    assert [line.number for line in evaluation.lines] == [1, 2, 3, 4, 5]
    assert [line.hypothesis for line in evaluation.lines] == list(OUTPUTS)
    assert [line.confidence for line in evaluation.lines] == [0, 0.1, 0.2, 0.3, 0.4]
    fourth = evaluation.lines[3]
    assert fourth.parts == (Part(TEST.sources[3], OUTPUTS[3], (Link(0, 1, 0.75),)),)
    assert fourth.warnings == ("cut in two",)
    assert fourth.suspicions == ("loop",)
    assert evaluation.num_warned == 1


def test_a_bare_output_has_no_confidence_and_no_alignment() -> None:
    line = evaluate_output(OUTPUTS, TEST, system=FAKE).lines[0]
    assert (line.confidence, line.parts, line.warnings) == (None, (), ())


def test_the_test_set_goes_through_in_windows_and_progress_is_told() -> None:
    fake, done = translator(), []
    evaluate_model(fake, TEST, system=FAKE, window_lines=2, progress=done.append)
    assert fake.calls == [2, 2, 1]
    assert done == [2, 4, 5]


def test_options_reach_every_score() -> None:
    shouted = tuple(output.upper() for output in OUTPUTS)
    cased = evaluate_output(shouted, TEST, system=FAKE)
    lower = evaluate_output(shouted, TEST, ScoreOptions(lowercase=True, tokenize="intl"), system=FAKE)
    assert "case:lc|eff:no|tok:intl" in lower.scores[0].signature
    assert lower.scores[0].value > cased.scores[0].value
    assert lower.buckets[0].bleu > cased.buckets[0].bleu
    assert lower.lines[0].chrf == 100 > cased.lines[0].chrf


def test_best_and_worst_are_by_chrf_and_then_the_longer() -> None:
    evaluation = evaluate_output(("The cat sleeps.", "", "No!", "", "Eh?"), TEST, system=FAKE)
    assert [line.number for line in evaluation.worst(2)] == [2, 4]
    assert [line.number for line in evaluation.best(2)] == [5, 1]
    assert [line.number for line in evaluation.worst(3)] == [2, 4, 5]
    assert [line.number for line in evaluation.best(3)] == [1, 3], "a line is shown once"
    assert evaluation.best(0) == []


def test_alignments_are_added_to_the_lines_that_are_shown() -> None:
    answers = {source: FakeTranslation(output) for source, output in zip(TEST.sources, OUTPUTS, strict=True)}
    evaluation = evaluate_model(FakeTranslator(answers), TEST, system=FAKE)
    changed = translator((*OUTPUTS[:4], "I cannot tell."))
    aligned = add_alignments(evaluation, changed, 2)
    with_parts = {line.number for line in aligned.lines if line.parts}
    shown = {line.number for line in (*evaluation.worst(2), *evaluation.best(2))}
    assert 5 in shown
    assert changed.calls == [4]
    assert with_parts == shown - {5}, "an alignment of another translation is none of this one"
    assert [line.hypothesis for line in aligned.lines] == list(OUTPUTS)


def test_the_summary_is_json_and_leaves_the_lines_out() -> None:
    evaluation = evaluate_model(translator(), TEST, system=FAKE)
    summary = evaluation.summary()
    assert json.loads(json.dumps(summary)) == summary
    assert set(summary) == {
        "system", "test_set", "num_pairs", "scores", "buckets", "rates", "num_warned", "speed"
    }  # fmt: skip
    assert summary["system"]["weights_hash"] == "f00d"
    assert summary["scores"][0] == {
        "name": "BLEU",
        "value": evaluation.scores[0].value,
        "signature": evaluation.scores[0].signature,
    }


def test_a_system_tells_what_is_known_and_nothing_else() -> None:
    assert System(name="x", engine="torch", beam=5).facts() == [("engine", "torch"), ("beam", "5")]
    assert System(name="x", length_penalty=0.0).facts() == [("length penalty", "0.0")]


def test_an_output_of_another_length_is_refused_with_both_numbers() -> None:
    with pytest.raises(DataError, match="3 translations and 5 references, expected as many"):
        evaluate_output(OUTPUTS[:3], TEST, system=FAKE)


def test_a_translator_that_loses_lines_is_refused() -> None:
    class Loses(FakeTranslator):
        def translate(self, texts: list[str], /) -> list[FakeTranslation]:
            return super().translate(texts)[1:]

    with pytest.raises(DataError, match="4 translations of 5 lines, expected as many"):
        evaluate_model(Loses(translator().answers), TEST, system=FAKE)
