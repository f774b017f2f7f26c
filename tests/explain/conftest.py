"""Explainers of tiny models, made once."""

from pathlib import Path

import pytest

from dragoman.explain import Explainer, Trace
from lively_model import SENTENCES, write_lively_bundle
from tiny_bundle import write_tiny_bundle


@pytest.fixture(scope="session")
def explainer(tmp_path_factory: pytest.TempPathFactory) -> Explainer:
    """Post-norm, two directions, three decoder layers."""
    return Explainer(write_lively_bundle(tmp_path_factory.mktemp("explain") / "lively"))


@pytest.fixture(scope="session")
def trace(explainer: Explainer) -> Trace:
    """Of a sentence that the model knows: its translation has several words, and ends."""
    return explainer.trace(SENTENCES[2])


@pytest.fixture(scope="session")
def checkpointed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder that a second model's weights are kept beside, as a training run leaves them."""
    folder = tmp_path_factory.mktemp("explain") / "trained"
    write_tiny_bundle(folder)
    return folder
