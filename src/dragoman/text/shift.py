"""Has one side slipped? In parallel text, a long sentence has a long translation, and one with digits, a question mark
or commas has them in its translation too. So over a window of pairs these features go together, and if they go together
better between source i and target i + k, the target side has slipped by k lines.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.text.corpus import Pair

OFFSETS = (-3, -2, -1, 0, 1, 2, 3)
WINDOW = 200  # pairs; by chance, an agreement then strays from 0 by about 0.07
_LEAST_WINDOW = 50
_LEAST_AGREEMENT = 0.4
_LEAST_GAIN = 0.3
_LOST_AGREEMENT = 0.35
_LOST_MISFIT = 2.0  # times the misfit of the corpus' best windows
_GAP_WINDOWS = 10
_LEAST_LINES = 5  # lines of a window in which a feature must occur, on both sides, to be listened to
_FEATURES = ("0123456789", "?？؟", ",，、،", "!！", ":：()（）")
_ZERO = OFFSETS.index(0)


def _groups() -> NDArray[np.int64]:
    """Of each code point, up to the last one that counts, the feature that it belongs to; 0 is none."""
    table = np.zeros(max(map(ord, "".join(_FEATURES))) + 2, dtype=np.int64)
    for group, characters in enumerate(_FEATURES, start=1):
        table[[ord(character) for character in characters]] = group
    return table


_GROUPS = _groups()


@dataclass(frozen=True)
class Shift:
    """A stretch of pairs from about `start` to `end` where the translation of line i is on line i + offset.

    Offset 0 stands for a stretch where no offset fits.
    """

    start: Pair
    end: Pair
    offset: int
    pairs: int


@dataclass(frozen=True)
class _Window:
    start: Pair
    end: Pair
    pairs: int
    offset: int
    agreement: float
    misfit: float


class ShiftFinder:
    """Reads one corpus' pairs in order and finds its shifts. Keeps a few numbers a window."""

    def __init__(self) -> None:
        self._pending: list[Pair] = []
        self._windows: list[_Window] = []
        self._moments = np.zeros(6)
        self._previous: tuple[list[Pair], int] = ([], 0)

    def look(self, pairs: Sequence[Pair]) -> None:
        """The next pairs."""
        self._pending.extend(pairs)
        while len(self._pending) >= WINDOW:
            self._close(self._pending[:WINDOW])
            del self._pending[:WINDOW]

    def finish(self) -> tuple[Shift, ...]:
        """The corpus has ended: its shifts, in order."""
        if len(self._pending) >= _LEAST_WINDOW:
            self._close(self._pending)
        self._pending = []
        return _stretches(self._windows, self._verdicts())

    @property
    def num_pairs(self) -> int:
        """How many pairs were looked at, in whole windows."""
        return int(self._moments[0])

    @property
    def length_correlation(self) -> float | None:
        """How well log lengths of the two sides go together over all pairs; None where lengths hardly vary."""
        n, x, y, xx, yy, xy = self._moments
        if n < WINDOW:
            return None
        x_variance, y_variance = xx / n - (x / n) ** 2, yy / n - (y / n) ** 2
        if min(x_variance, y_variance) < 0.15**2:
            return None
        return float((xy / n - x * y / n**2) / np.sqrt(x_variance * y_variance))

    def _close(self, pairs: list[Pair]) -> None:
        sources = features([pair.source for pair in pairs])
        targets = features([pair.target for pair in pairs])
        x, y = sources[0], targets[0]
        self._moments += (len(pairs), x.sum(), y.sum(), x @ x, y @ y, x @ y)
        agreements = np.array([agreement(sources, targets, offset) for offset in OFFSETS])
        best = int(agreements.argmax())
        is_shift = agreements[best] >= _LEAST_AGREEMENT and agreements[best] - agreements[_ZERO] >= _LEAST_GAIN
        offset = OFFSETS[best] if is_shift else 0
        start = pairs[0]
        before, offset_before = self._previous
        if offset != offset_before:
            start = _turning_point(before + pairs, offset_before, offset)
        misfit = float(_misfit(x, y, 0).mean())
        window = _Window(start, pairs[-1], len(pairs), offset, float(agreements[_ZERO]), misfit)
        self._windows.append(window)
        self._previous = (pairs, offset)

    def _verdicts(self) -> list[int | None]:
        """Of each window its offset, 0 if it has lost the alignment that the corpus has elsewhere, None if it is well.

        Agreement alone does not tell a lost alignment: in data sorted by length, all lengths of a window are the same.
        """
        usual = float(np.quantile([window.misfit for window in self._windows], 0.1)) if self._windows else 0.0
        return [
            window.offset
            or (0 if window.agreement < _LOST_AGREEMENT and window.misfit > _LOST_MISFIT * usual else None)
            for window in self._windows
        ]


def _stretches(windows: Sequence[_Window], verdicts: Sequence[int | None]) -> tuple[Shift, ...]:
    """Windows of one verdict, joined over gaps of a few windows that could not tell."""
    runs: list[tuple[int, list[int]]] = []
    for index, verdict in enumerate(verdicts):
        if verdict is None:
            continue
        if runs and runs[-1][0] == verdict and index - runs[-1][1][-1] <= _GAP_WINDOWS:
            runs[-1][1].append(index)
        else:
            runs.append((verdict, [index]))
    return tuple(
        Shift(
            windows[run[0]].start,
            windows[run[-1]].end,
            verdict,
            sum(windows[i].pairs for i in range(run[0], run[-1] + 1)),
        )
        for verdict, run in runs
        # One odd window among many may be chance; as the last one it may be where the trouble begins.
        if len(run) > 1 or (verdict and run[0] == len(windows) - 1)
    )


def features(texts: Sequence[str]) -> NDArray[np.float64]:
    """[features, texts]: log lengths, then how many digits, question marks, commas ... there are (log, too)."""
    lengths = np.array([len(text) for text in texts])
    codes = np.frombuffer("".join(texts).encode("utf-32-le"), dtype=np.uint32)
    groups = _GROUPS[np.minimum(codes, len(_GROUPS) - 1)]
    num_groups = len(_FEATURES) + 1
    texts_of_codes = np.repeat(np.arange(len(texts)), lengths)
    counts = np.bincount(texts_of_codes * num_groups + groups, minlength=len(texts) * num_groups)
    table = counts.reshape(len(texts), num_groups).T.astype(np.float64)
    table[0] = lengths
    return np.log1p(table)


def agreement(sources: NDArray[np.float64], targets: NDArray[np.float64], offset: int) -> float:
    """Mean correlation, over the features that occur often enough to tell, of source i with target i + offset."""
    listened = [
        feature
        for feature in range(len(sources))
        if min(np.count_nonzero(sources[feature]), np.count_nonzero(targets[feature])) >= _LEAST_LINES
    ]
    length = sources.shape[1] - abs(offset)
    x = sources[listened, max(0, -offset) :][:, :length]
    y = targets[listened, max(0, offset) :][:, :length]
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    scale = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    varies = scale > 1e-9
    return float(((x * y).sum(axis=1)[varies] / scale[varies]).mean()) if varies.any() else 0.0


def _turning_point(pairs: list[Pair], before: int, after: int) -> Pair:
    """Where `after` becomes the better offset: the cut with the least misfit of lengths on its two sides."""
    sources = features([pair.source for pair in pairs])[0]
    targets = features([pair.target for pair in pairs])[0]
    misfits = [_misfit(sources, targets, offset) for offset in (before, after)]
    gain = np.cumsum(misfits[0] - misfits[1])
    # Cutting before line c leaves the lines from c on to `after`: what they gain is the whole less what came before c.
    return pairs[int((gain[-1] - np.concatenate([[0.0], gain[:-1]])).argmax())]


def _misfit(sources: NDArray[np.float64], targets: NDArray[np.float64], offset: int) -> NDArray[np.float64]:
    lines = np.clip(np.arange(len(sources)) + offset, 0, len(sources) - 1)
    difference = sources - targets[lines]
    return np.abs(difference - np.median(difference))
