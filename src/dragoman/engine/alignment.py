"""Which of the decoder's attentions is read as an alignment: one choice for all engines."""

from dragoman.config import ModelConfig


def alignment_layer(config: ModelConfig) -> int:
    """The decoder block whose cross-attention, averaged over its heads, says what a target piece came from.

    The last block is busy with the piece to come; the one before it aligns best (Garg et al. 2019). A decoder of two
    blocks or one has no such middle, there it is the last.
    """
    return config.decoder_layers - 2 if config.decoder_layers > 2 else config.decoder_layers - 1
