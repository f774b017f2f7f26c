"""The one place where a config becomes a model."""

from dragoman.config import ModelConfig
from dragoman.model.recurrent import RecurrentTranslator
from dragoman.model.transformer import Transformer

TranslationModel = Transformer | RecurrentTranslator
"""What is trained, searched and explained: the two have one interface."""


def build_model(config: ModelConfig) -> TranslationModel:
    """The model of this shape, with weights that have learned nothing yet."""
    return RecurrentTranslator(config) if config.architecture == "recurrent" else Transformer(config)
