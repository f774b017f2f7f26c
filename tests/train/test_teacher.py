"""Distillation: what a teacher says, in the student's pieces, and runs that listen to one."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import weights_hash
from small_runs import events, run_small, small_recipe, stop_at, weights, write_corpus

from dragoman.bundle import Bundle
from dragoman.errors import ConfigError, TrainingError
from dragoman.recipe import CorpusConfig, TokenizerConfig
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.objective import Objective
from dragoman.train.teacher import Teacher, lesson

CPU = torch.device("cpu")
SENTENCES = [("taro ba miku de peli .", "the red cat sees the big dog ."), ("miku de", "the dog .")]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> CorpusConfig:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def one_way(corpus: CorpusConfig, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    folder = tmp_path_factory.mktemp("one-way") / "teacher"
    run_small(small_recipe(corpus), folder)
    return Bundle.open(folder)


@pytest.fixture(scope="module")
def both_ways(corpus: CorpusConfig, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """Its pieces are those of `one_way`, behind two language tags."""
    folder = tmp_path_factory.mktemp("both-ways") / "teacher"
    run_small(small_recipe(replace(corpus, both_ways=True), max_steps=2), folder)
    return Bundle.open(folder)


def batch(tokenizer: Tokenizer, head: tuple[int, ...] = ()) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The sentences as a student's ids: source, target in, target out."""
    sources, targets = (tokenizer.ids_batch(side) for side in zip(*SENTENCES, strict=True))

    def padded(rows: list[list[int]]) -> torch.Tensor:
        return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], batch_first=True)

    return (
        padded([[*head, *ids, tokenizer.end_id] for ids in sources]),
        padded([[tokenizer.begin_id, *ids] for ids in targets]),
        padded([[*ids, tokenizer.end_id] for ids in targets]),
    )


def test_a_student_that_thinks_as_its_teacher_has_nothing_to_learn_from_it(one_way: Bundle) -> None:
    model = one_way.load_model()
    teacher = Teacher(one_way, one_way.tokenizer, one_way.directions, CPU)
    taught = {share: Objective(model, 0, 0.1, teachers=[teacher], distillation=share) for share in (0.0, 1.0)}
    sizes = {}
    for share, objective in taught.items():
        model.zero_grad()
        objective.train()(*batch(one_way.tokenizer)).smoothed.backward()
        sizes[share] = sum(p.grad.abs().sum().item() for p in model.parameters() if p.grad is not None)
    assert sizes[1.0] < 1e-4 * sizes[0.0]


def test_a_validation_is_without_teachers(one_way: Bundle) -> None:
    model, teacher = one_way.load_model(), Teacher(one_way, one_way.tokenizer, one_way.directions, CPU)
    losses = [
        Objective(model, 0, 0.1, **more).eval()(*batch(one_way.tokenizer)).smoothed
        for more in ({}, {"teachers": [teacher], "distillation": 0.5})
    ]
    assert losses[0] == losses[1]


def test_a_teacher_hears_the_students_ids_as_its_own(one_way: Bundle, both_ways: Bundle) -> None:
    student, own = one_way.tokenizer, both_ways.tokenizer
    assert student.id("▁cat") != own.id("▁cat")
    source_BS, target_BT, _ = batch(student)
    heard = Teacher(both_ways, student, ("xx-yy",), CPU).hear(source_BS, target_BT)
    own_BS, own_BT, _ = batch(own, head=(own.language_id("yy"),))
    torch.testing.assert_close(heard.hidden_BTD, both_ways.load_model().eval().hidden(own_BS, own_BT))
    assert heard.is_known_B.all()


def test_its_answers_are_in_the_students_pieces(one_way: Bundle, both_ways: Bundle) -> None:
    student, own = one_way.tokenizer, both_ways.tokenizer
    source_BS, target_BT, _ = batch(student)
    taught = lesson([Teacher(both_ways, student, ("xx-yy",), CPU)], source_BS, target_BT, torch.arange(3), 0.5)
    assert taught is not None
    own_BS, own_BT, _ = batch(own, head=(own.language_id("yy"),))
    wanted_NV = both_ways.load_model().eval()(own_BS, own_BT)[0, :3]
    of_own_V = torch.tensor([own.id(piece) for piece in student.pieces(range(student.vocab_size))])
    found_NV = taught.probability(slice(0, 3))
    torch.testing.assert_close(found_NV, wanted_NV.index_select(1, of_own_V).softmax(dim=-1))


def test_the_mean_of_teachers_is_that_of_their_probabilities(one_way: Bundle, both_ways: Bundle) -> None:
    student = one_way.tokenizer
    source_BS, target_BT, _ = batch(student)
    teachers = [Teacher(bundle, student, ("xx-yy",), CPU) for bundle in (one_way, both_ways)]

    def probability(*some: Teacher) -> torch.Tensor:
        taught = lesson(some, source_BS, target_BT, torch.arange(4), 0.5)
        assert taught is not None
        return taught.probability(slice(1, 3))

    both_NV = probability(*teachers)
    assert both_NV.shape == (2, student.vocab_size)
    torch.testing.assert_close(both_NV, (probability(teachers[0]) + probability(teachers[1])) / 2)


def test_it_is_silent_where_it_lacks_a_piece(one_way: Bundle) -> None:
    student = one_way.tokenizer
    teacher = Teacher(one_way, student, one_way.directions, CPU)
    source_BS, target_BT, _ = batch(student)
    teacher.target_V[target_BT[0, 2]] = -1
    real_N = torch.arange(target_BT.numel())
    taught = lesson([teacher], source_BS, target_BT, real_N, 0.5)
    assert taught is not None
    assert taught.share_N.view_as(target_BT).tolist() == [[0.0] * target_BT.shape[1], [0.5] * target_BT.shape[1]]


def test_no_teacher_no_lesson() -> None:
    assert lesson([], torch.zeros(2, 3), torch.zeros(2, 3), torch.arange(6), 0.5) is None


@pytest.mark.parametrize(
    ("student_tagged", "directions", "message"),
    [
        (False, ("yy-xx",), "knows xx-yy, and is to teach yy-xx: take another --teacher"),
        (True, ("xx-yy",), "writes one language, and is to teach a model of several: take another --teacher"),
    ],
)
def test_a_teacher_that_cannot_teach_is_refused(
    one_way: Bundle, both_ways: Bundle, student_tagged: bool, directions: tuple[str, ...], message: str
) -> None:
    student = (both_ways if student_tagged else one_way).tokenizer
    with pytest.raises(ConfigError, match=message):
        Teacher(one_way, student, directions, CPU)


def test_a_teacher_with_other_pieces_is_refused(one_way: Bundle) -> None:
    student = Tokenizer.learn(["уруку шабо", "это другое слово"] * 20, TokenizerConfig(vocab_size=331))
    with pytest.raises(ConfigError, match=r"has \d+% of the pieces that are learned, and cannot teach the others"):
        Teacher(one_way, student, ("xx-yy",), CPU)


def test_a_student_has_its_teachers_pieces_a_shape_of_its_own_and_tells_whose_data_it_learned(
    one_way: Bundle, tmp_path: Path
) -> None:
    few = write_corpus(tmp_path, 101, "few.tsv", seed=7)
    recipe = small_recipe(few, max_steps=3, model={"d_model": 16, "d_ff": 24})
    run_small(recipe, tmp_path / "student", teachers=(str(one_way.path),))
    student = Bundle.open(tmp_path / "student")
    assert student.tokenizer.fingerprint() == one_way.tokenizer.fingerprint()
    assert student.model_config.d_model == 16
    assert [one["name"] for one in student.scorecard["data"]] == ["pairs.tsv", "few.tsv"]


def test_a_student_comes_nearer_to_its_teacher_than_pairs_alone_would_take_it(
    corpus: CorpusConfig, one_way: Bundle, tmp_path: Path
) -> None:
    teacher = one_way.load_model().eval()
    source_BS, target_BT, _ = batch(one_way.tokenizer)
    thought_NV = teacher(source_BS, target_BT)[0].softmax(dim=-1)
    far = {}
    for share in (0.0, 1.0):
        folder = tmp_path / f"share-{share}"
        run_small(small_recipe(corpus, distillation=share, seed=2), folder, teachers=(str(one_way.path),))
        log_NV = Bundle.open(folder).load_model().eval()(source_BS, target_BT)[0].log_softmax(dim=-1)
        far[share] = torch.nn.functional.kl_div(log_NV, thought_NV, reduction="sum").item()
    assert far[1.0] < 0.8 * far[0.0]


def test_a_run_with_a_teacher_is_taken_up_again_with_it(corpus: CorpusConfig, one_way: Bundle, tmp_path: Path) -> None:
    recipe, teachers = small_recipe(corpus), (str(one_way.path),)
    run_small(recipe, tmp_path / "whole", teachers=teachers)
    run_small(recipe, tmp_path / "cut", teachers=teachers, trackers=[stop_at(10)])
    run_small(recipe, tmp_path / "cut", resume=True)
    assert weights_hash(tmp_path / "cut") == weights_hash(tmp_path / "whole")
    run_small(recipe, tmp_path / "alone")
    assert any((weights(tmp_path / "alone")[name] != array).any() for name, array in weights(tmp_path / "cut").items())


def test_a_run_is_not_taken_up_with_another_teacher(
    corpus: CorpusConfig, one_way: Bundle, both_ways: Bundle, tmp_path: Path
) -> None:
    run_small(small_recipe(corpus), tmp_path / "cut", teachers=(str(one_way.path),), trackers=[stop_at(10)])
    with pytest.raises(TrainingError, match="--teacher"):
        run_small(small_recipe(corpus), tmp_path / "cut", teachers=(str(both_ways.path),), resume=True)


def test_a_run_from_before_there_were_teachers_goes_on_without(corpus: CorpusConfig, tmp_path: Path) -> None:
    run_small(small_recipe(corpus), tmp_path / "cut", trackers=[stop_at(10)])
    file = tmp_path / "cut" / "run" / "run.json"
    values = json.loads(file.read_text(encoding="utf-8"))
    del values["teachers"]
    file.write_text(json.dumps(values), encoding="utf-8")
    run_small(small_recipe(corpus), tmp_path / "cut", resume=True)
    assert events(tmp_path / "cut", "end")[-1]["step"] == 20


@pytest.mark.parametrize(
    ("changes", "more", "message"),
    [
        ({"r_drop": 1.0}, {"teachers": ("fr-en",)}, "--teacher and train.r_drop do not go together"),
        ({}, {"asked": ("train.distillation",)}, "name one with --teacher"),
    ],
)
def test_what_would_do_nothing_is_refused(
    corpus: CorpusConfig, tmp_path: Path, changes: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        run_small(small_recipe(corpus, **changes), tmp_path / "model", **more)
