"""A model folder is whole: raw text in, raw text out, with everything that this takes and how well it went.

    config.json         format, directions, the model's shape, how to search, the weights' size and hash
    tokenizer.json      text to ids and back; an imported model has the SentencePiece models that it came with instead
    model.safetensors   the weights, float32 or float16
    words.json          which words it has met in training, so that unknown names are known to be such, what words
                        by themselves are translated as, and which have an apostrophe; may be missing
    README.md           the model card
    scorecard.json      data, scores, samples; what `dragoman info` and the card print
    training.jsonl      how the training went, if it was kept

Nothing here needs torch but `Bundle.load_model`. No pickle anywhere.

    folder      `Bundle`: open, read and write such a folder
    weights     what the weights are called, their shapes, and the way to a torch model and back
    card        the model card; `recording` writes findings into it
    averaging   one model of several, the mean of their weights
    box         the models that came with the package, by name
    hub         models on a hub, by name
"""

from dragoman.bundle.box import find, find_direction, in_the_box
from dragoman.bundle.card import model_card
from dragoman.bundle.folder import FORMAT, Bundle
from dragoman.bundle.weights import expected_shapes, state_to_weights, weights_to_state

__all__ = [
    "FORMAT",
    "Bundle",
    "expected_shapes",
    "find",
    "find_direction",
    "in_the_box",
    "model_card",
    "state_to_weights",
    "weights_to_state",
]
