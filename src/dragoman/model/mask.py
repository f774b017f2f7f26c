"""Who may look at whom (section 3.2.3). A mask is boolean and True means "may look"."""

import torch
from torch import Tensor


def padding_mask(ids_BS: Tensor, padding_id: int) -> Tensor:
    """Every query may look at the real pieces and at no padding: ids (B, S) -> mask (B, 1, 1, S)."""
    return (ids_BS != padding_id)[:, None, None, :]


def causal_mask(num_queries: int, num_keys: int | None = None, device: torch.device | None = None) -> Tensor:
    """A position may look at itself and at what came before it: -> mask (Q, K), K = Q if not given.

    With more keys than queries (a cache), the queries are the last positions.
    """
    num_keys = num_queries if num_keys is None else num_keys
    mask_QK = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    return mask_QK.tril(num_keys - num_queries)
