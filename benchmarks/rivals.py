"""The models that ours are measured against, of the same shape: `torch.nn.Transformer` and transformers' MarianMT."""

import torch.nn.functional as F
from torch import Tensor, nn

from dragoman.config import ModelConfig
from dragoman.model.position import sinusoid


class TorchTransformer(nn.Module):
    """What a careful person writes around `nn.Transformer`: scaled, tied embeddings, sinusoids, causal mask."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pieces = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.pieces.weight, std=config.d_model**-0.5)
        self.register_buffer("table", sinusoid(config.max_length, config.d_model))
        self.dropout = nn.Dropout(config.dropout)
        self.body = nn.Transformer(
            config.d_model,
            config.num_heads,
            config.encoder_layers,
            config.decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
        )

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.pieces(ids) * self.pieces.embedding_dim**0.5 + self.table[: ids.shape[1]])

    def forward(self, source: Tensor, target_in: Tensor, target_out: Tensor) -> Tensor:
        """The mean loss over real target pieces."""
        padding = source == 0
        causal = nn.Transformer.generate_square_subsequent_mask(target_in.shape[1])
        hidden = self.body(
            self.embed(source),
            self.embed(target_in),
            tgt_mask=causal,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
            tgt_is_causal=True,
        )
        logits = F.linear(hidden, self.pieces.weight)
        return F.cross_entropy(logits.flatten(0, 1), target_out.flatten(), ignore_index=0, label_smoothing=0.1)


class Marian(nn.Module):
    """transformers' MarianMTModel with random weights, and the loss that its own examples use."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        from transformers import MarianConfig, MarianMTModel

        self.model = MarianMTModel(
            MarianConfig(
                vocab_size=config.vocab_size,
                d_model=config.d_model,
                encoder_layers=config.encoder_layers,
                decoder_layers=config.decoder_layers,
                encoder_attention_heads=config.num_heads,
                decoder_attention_heads=config.num_heads,
                encoder_ffn_dim=config.d_ff,
                decoder_ffn_dim=config.d_ff,
                dropout=config.dropout,
                activation_function="relu",
                scale_embedding=True,
                pad_token_id=0,
                eos_token_id=2,
                decoder_start_token_id=1,
                forced_eos_token_id=None,
            )
        )

    def forward(self, source: Tensor, target_in: Tensor, target_out: Tensor) -> Tensor:
        """The mean loss over real target pieces."""
        output = self.model(input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=target_in)
        return F.cross_entropy(output.logits.flatten(0, 1), target_out.flatten(), ignore_index=0, label_smoothing=0.1)
