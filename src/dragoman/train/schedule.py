"""The learning rate over the steps (section 5.3, equation 3), and three other shapes."""

import math

from dragoman.recipe import TrainConfig


def paper_rate(step: int, d_model: int, warmup_steps: int) -> float:
    """d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5): climb in a line, then fall as 1 / sqrt(step)."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def learning_rate(step: int, config: TrainConfig, d_model: int, total_steps: int) -> float:
    """The rate of `step` (the first is 1) in a run of `total_steps`; `config.learning_rate` is the peak, if given."""
    warmup = min(1.0, step / config.warmup_steps)
    if config.schedule == "paper":
        scale = config.learning_rate / paper_rate(config.warmup_steps, d_model, config.warmup_steps)
        return paper_rate(step, d_model, config.warmup_steps) * (scale or 1.0)
    peak = config.learning_rate or default_peak(d_model)
    if config.schedule == "inverse-sqrt":
        return peak * min(warmup, math.sqrt(config.warmup_steps / step))
    after_warmup = max(0, step - config.warmup_steps) / max(1, total_steps - config.warmup_steps)
    if config.schedule == "cosine":
        return peak * warmup * 0.5 * (1 + math.cos(math.pi * min(1.0, after_warmup)))
    decay_steps = config.decay_share * total_steps
    left = max(0.0, total_steps - step + 1)
    return peak * warmup * min(1.0, left / decay_steps if decay_steps else 1.0)


def default_peak(d_model: int) -> float:
    """A peak that suits the width: wider models take smaller steps."""
    return 0.016 / math.sqrt(d_model)
