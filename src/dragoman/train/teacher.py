"""Distillation (Hinton, Vinyals and Dean 2015; Kim and Rush 2016): models that have learned say of every piece what
else might have stood there, and a student learns that beside what people wrote.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.bundle import Bundle
from dragoman.errors import ConfigError
from dragoman.text.tokenizer import Tokenizer
from dragoman.train.loss import Lesson

ENOUGH_PIECES = 0.99
NOT_THERE = -1


@dataclass(frozen=True)
class Heard:
    """What a teacher has to say of a batch, and of which sentences: it is silent where it lacks a piece."""

    hidden_BTD: Tensor
    is_known_B: Tensor


class Teacher:
    """A model that is asked, never changed; it speaks in the student's pieces, whose ids may not be its own."""

    def __init__(self, bundle: Bundle, student: Tokenizer, directions: Sequence[str], device: torch.device) -> None:
        own = bundle.tokenizer
        self._check(bundle, student, directions)
        self.model = bundle.load_model().to(device).eval().requires_grad_(False)
        self.source_V = _matched(student, own).to(device)
        self.target_V = _matched(student.target_side, own.target_side).to(device)
        known = (self.target_V != NOT_THERE).float().mean().item()
        if known < ENOUGH_PIECES:
            raise ConfigError(
                f"{bundle.path} has {known:.0%} of the pieces that are learned, and cannot teach the others: "
                f"leave out --init and the recipe's pieces, and the student has those of its teacher"
            )
        tag = own.language_id(directions[0].split("-")[1]) if own.languages and not student.languages else NOT_THERE
        self.prefix_1 = torch.tensor([tag] if tag != NOT_THERE else [], dtype=torch.long, device=device)
        there_V = self.target_V.clamp(min=0)
        bias_V = self.model.output_bias_V
        kept_V = torch.zeros(len(there_V), device=device) if bias_V is None else bias_V.index_select(0, there_V)
        self.weight_VD = self.model.output_weight_VD.index_select(0, there_V)
        self.bias_V = kept_V.masked_fill(self.target_V == NOT_THERE, -torch.inf)

    @staticmethod
    def _check(bundle: Bundle, student: Tokenizer, directions: Sequence[str]) -> None:
        if missing := [name for name in directions if name not in bundle.directions]:
            raise ConfigError(
                f"{bundle.path} knows {', '.join(bundle.directions)}, and is to teach {missing[0]}: "
                f"take another --teacher"
            )
        if student.languages and not bundle.tokenizer.languages:
            raise ConfigError(
                f"{bundle.path} writes one language, and is to teach a model of several: take another --teacher"
            )

    @torch.no_grad()
    def hear(self, source_BS: Tensor, target_in_BT: Tensor) -> Heard:
        """Its decoder's output for the batch, in its own ids."""
        own_BS, own_BT = self.source_V[source_BS], self.target_V[target_in_BT]
        is_known_B = (own_BS != NOT_THERE).all(dim=1) & (own_BT != NOT_THERE).all(dim=1)
        own_BS = torch.cat((self.prefix_1.expand(len(own_BS), -1), own_BS), dim=1)
        return Heard(self.model.hidden(own_BS.clamp(min=0), own_BT.clamp(min=0)), is_known_B)


def lesson(
    teachers: Iterable[Teacher], source_BS: Tensor, target_in_BT: Tensor, real_N: Tensor, share: float
) -> Lesson | None:
    """What all of them say of the real positions; None where there is no teacher."""
    heard = [(teacher, teacher.hear(source_BS, target_in_BT)) for teacher in teachers]
    if not heard:
        return None
    is_known_B = torch.stack([said.is_known_B for _, said in heard]).all(dim=0)
    share_BT = share * is_known_B[:, None].expand_as(target_in_BT)
    return Lesson(
        hidden=[said.hidden_BTD.flatten(0, 1).index_select(0, real_N) for _, said in heard],
        weight=[teacher.weight_VD for teacher, _ in heard],
        bias=[teacher.bias_V for teacher, _ in heard],
        share_N=share_BT.flatten().index_select(0, real_N),
    )


def _matched(student: Tokenizer, own: Tokenizer) -> Tensor:
    """By the student's ids, the teacher's."""
    pieces = student.pieces(range(student.vocab_size))
    return torch.tensor([own.id(piece) if piece in own else NOT_THERE for piece in pieces])
