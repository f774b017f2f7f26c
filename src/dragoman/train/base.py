"""What a run takes from models that have learned: one to go on from (`--init`), and teachers (`--teacher`)."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from dragoman.bundle import Bundle, find
from dragoman.errors import ConfigError
from dragoman.recipe import CorpusConfig, Recipe, SearchConfig
from dragoman.text.corpus import corpus_languages
from dragoman.text.languages import UNKNOWN
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.request import Request
from dragoman.train.teacher import Teacher


def initial_recipe(request: Request, base: Bundle | None) -> Recipe:
    """With --init the shape is that of the model that is gone on from, and what that was validated on is watched."""
    recipe = request.recipe
    if base is None:
        return recipe
    dropouts = {name: getattr(recipe.model, name) for name in ("dropout", "attention_dropout", "activation_dropout")}
    left_behind = [(path, path.name.split(".")[1]) for path in sorted((base.path / "run").glob("valid.*.tsv"))]
    watch = recipe.data.watch or tuple(CorpusConfig(path=str(path), languages=pair) for path, pair in left_behind)
    train, valid, test = (
        tuple(_speaking(corpus, base) for corpus in of)
        for of in (recipe.data.train, recipe.data.valid, recipe.data.test)
    )
    data = replace(recipe.data, train=train, valid=valid, test=test, watch=watch)
    search = base.search if recipe.search == SearchConfig() else recipe.search
    # What has been learned is not to be unlearned: its embeddings go no faster than the rest.
    slower = replace(recipe.train, embedding_rate=recipe.train.embedding_rate or 1.0)
    return replace(recipe, model=replace(base.model_config, **dropouts), data=data, search=search, train=slower)


def _speaking(corpus: CorpusConfig, base: Bundle) -> CorpusConfig:
    """A corpus that tells no languages has those of the model that is gone on from."""
    if corpus_languages(corpus) != UNKNOWN:
        return corpus
    if len(base.directions) > 1:
        raise ConfigError(f"{base.path} knows {', '.join(base.directions)}: say which with --from and --to")
    return replace(corpus, languages=base.directions[0])


def pieces_of(request: Request) -> Tokenizer | None:
    """A model that goes on from another has its pieces, and a student those of its first teacher."""
    origins = [name for name in (request.init, *request.teachers) if name]
    return Bundle.open(find(origins[0])).tokenizer if origins else None


def check_teaching(request: Request) -> None:
    """Refuse what would do nothing, or nothing that anybody can mean, before the data are looked at."""
    for name in request.teachers:
        Bundle.open(find(name))
    if request.teachers and request.recipe.train.r_drop:
        raise ConfigError("--teacher and train.r_drop do not go together: leave out one of them")
    if not request.teachers and "train.distillation" in request.asked:
        raise ConfigError("train.distillation is the share of what a teacher thinks: name one with --teacher")


def find_teachers(
    request: Request, student: Tokenizer, directions: Sequence[str], device: torch.device
) -> list[Teacher]:
    """Those that are asked for, each with what it takes to understand the student."""
    return [Teacher(Bundle.open(find(name)), student, directions, device) for name in request.teachers]
