"""The end of a run: which weights become the model, how good they are, and the folder that holds them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from dragoman.bundle import Bundle, find, model_card, state_to_weights
from dragoman.bundle.folder import CONFIG
from dragoman.recipe import Recipe
from dragoman.settings import to_mapping
from dragoman.text.corpus import content_hash
from dragoman.text.known_words import KnownWords
from dragoman.text.metrics import corpus_scores
from dragoman.train import checkpoint
from dragoman.train.averaging import Weights
from dragoman.train.checkpoint import Progress
from dragoman.train.journal import Journal
from dragoman.train.plan import Plan
from dragoman.train.prepare import Prepared, directions_of
from dragoman.train.request import Request
from dragoman.train.validate import Validation


@dataclass(frozen=True)
class TrainingResult:
    """How a run ended, and where its model is."""

    folder: str
    reason: str
    step: int
    seconds: float
    scores: list[dict[str, Any]]

    def to_mapping(self) -> dict[str, Any]:
        return asdict(self)


class Finisher:
    """Writes the model folder: at every better validation, so that there always is one, and at the end."""

    def __init__(
        self,
        request: Request,
        plan: Plan,
        recipe: Recipe,
        prepared: Prepared,
        validation: Validation,
        journal: Journal,
        known_words: KnownWords | None,
    ) -> None:
        self.request = request
        self.plan = plan
        self.recipe = recipe
        self.prepared = prepared
        self.validation = validation
        self.journal = journal
        self.known_words = known_words
        self.base = Bundle.open(find(request.init)).scorecard if request.init else {}
        own = self._described_data()  # at once, as files may be gone or changed when the model is written
        learned = [self.base, *(Bundle.open(find(name)).scorecard for name in request.teachers)]
        known = {one["sha256"] for one in own}
        told = [one for card in learned for one in card.get("data", []) if one.get("sha256") not in known]
        self.data = [*(one for place, one in enumerate(told) if one not in told[:place]), *own]

    def keep(self, metrics: Mapping[str, Any], progress: Progress) -> None:
        """Write the weights that were just validated, and were better than all before."""
        on = f"validation, {len(self.validation.sampled)} pairs, greedy, step {progress.step}"
        scores = [{"metric": name, "score": metrics[name], "on": on} for name in ("bleu", "chrf", "loss")]
        self._write(scores, progress)

    def nothing(self, progress: Progress) -> TrainingResult:
        """What ranks other than the first have to say."""
        return TrainingResult(str(self.request.output), progress.finished, progress.step, progress.seconds, [])

    def finish(self, progress: Progress, weights: Weights) -> TrainingResult:
        """Take the best validation's weights or the average of the last, whichever validates better; score, write."""
        if progress.finished == "interrupted":
            self.journal.say(f"stopped at step {progress.step}; the same command with --resume goes on from there")
            return self.nothing(progress)
        chosen, state = "the best validation", checkpoint.load(weights.best)[0]
        if self.recipe.train.average > 1 and len(weights.last()) > 1:
            average = checkpoint.average(weights.last())
            if self._judge(average) > self._judge(state):
                chosen, state = f"the average of the last {len(weights.last())}", average
        self.validation.model.load_state_dict(state)
        scores = self._score()
        if not self._is_written(scores, progress):
            self._write(scores, progress)
        figures = ", ".join(f"{score['metric']} {score['score']:.1f}" for score in scores)
        self.journal.say(f"{self.request.output} has {chosen}: validation {figures}")
        return TrainingResult(str(self.request.output), progress.finished, progress.step, progress.seconds, scores)

    def _is_written(self, scores: list[dict[str, Any]], progress: Progress) -> bool:
        """Whether the folder has this very model already: what was recorded of it since is not to be lost."""
        if not (self.request.output / CONFIG).is_file():
            return False
        told = Bundle.open(self.request.output).scorecard
        return told.get("steps") == progress.step and all(score in told.get("scores", []) for score in scores)

    def _judge(self, state: Mapping[str, Tensor]) -> float:
        """By the recipe's metric, more is better."""
        value = float(self.validation(state)[self.recipe.train.metric])
        return -value if self.recipe.train.metric == "loss" else value

    def _score(self) -> list[dict[str, Any]]:
        """Pairs from all over the validation set, translated as `translate` will: with the recipe's search."""
        indices = self.validation.sampled
        outputs = self.validation.translate(indices, self.recipe.search)
        references = [self.validation.pairs[index].target for index in indices]
        on = f"validation, {len(references):,} pairs, beam {self.recipe.search.beam}"
        return [
            {"metric": score.name, "score": score.value, "signature": score.signature, "on": on}
            for score in corpus_scores(outputs, references, metrics=("bleu", "chrf"))
        ]

    def _write(self, scores: list[dict[str, Any]], progress: Progress) -> None:
        config, model, card, base = self.recipe.model, self.validation.model, self.recipe.card, self.base
        scorecard = {
            **_told(licence=card.licence or base.get("licence", ""), limits=card.limits or base.get("limits", "")),
            "scores": scores,
            "data": self.data,
            "command": self.request.command,
            "minutes": round(progress.seconds / 60, 1),
            "steps": progress.step,
            "target_tokens": progress.target_tokens,
            "recipe": to_mapping(self.recipe),
        }
        Bundle.write(
            self.request.output,
            model_config=config,
            search=self.recipe.search,
            tokenizer=self.prepared.tokenizer,
            weights=state_to_weights(model),
            directions=self.prepared.directions,
            known_words=self.known_words,
            card=model_card(
                directions=self.prepared.directions,
                model_config=config,
                num_parameters=model.num_parameters(),
                scorecard=scorecard,
            ),
            scorecard=scorecard,
        )

    def _described_data(self) -> list[dict[str, Any]]:
        """The corpora; one that is learned in both directions is told once, by the pairs of the first."""
        datasets = zip(directions_of(self.recipe.data.train), self.prepared.train.datasets, strict=True)
        return [
            {
                "name": " + ".join(Path(path).name for path in (corpus.path, corpus.target_path) if path),
                "pairs": len(dataset),
                "sha256": content_hash([corpus]),
                **_told(licence=corpus.licence, attribution=corpus.attribution),
            }
            for direction, dataset in datasets
            if not direction.reverse and (corpus := direction.corpus)
        ]


def _told(**facts: str) -> dict[str, str]:
    return {name: text for name, text in facts.items() if text}
