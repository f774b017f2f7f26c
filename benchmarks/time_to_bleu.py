"""Minutes until a model is good: our default training against plain Adam with the paper's schedule.

Both train the same shape on the same pairs, cut into the same pieces, on this machine, one after the other, for the
same number of minutes; BLEU is that of 300 validation pairs, greedy, at every validation. The ratio is the time that
ours took to reach what the plain run has at its end, the mean of its last three validations, over the plain run's
time. The paper's 4,000 steps of warm-up would not be over when the time is: the plain run's are fewer (--plain-warmup),
so that its rate falls too, from the peak that the paper's formula has after 4,000 steps. Its batches are as large as
ours, which are planned.

    python benchmarks/time_to_bleu.py --output docs/images/time_to_bleu.svg
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "tatoeba-fr-en"
SHAPE = ("d_model=256", "d_ff=1024", "num_heads=4", "encoder_layers=3", "decoder_layers=3")
OURS = ("model.norm_order=pre",)  # as planned models have it
PEAK = 256**-0.5 * 4000**-0.5  # of the paper's formula
PLAIN = ("train.optimizer=adam", "train.schedule=paper", f"train.learning_rate={PEAK:.6f}", "model.norm_order=post")
COLOURS = {"dragoman": "#0072B2", "plain Adam, paper's schedule": "#D55E00"}


@dataclass(frozen=True)
class Curve:
    """BLEU after so many minutes, validation by validation, in a run of so many steps of so many target pieces."""

    minutes: list[float]
    bleu: list[float]
    steps: int
    batch_tokens: int

    def end(self) -> float:
        """The mean of the last three validations: one alone may be some BLEU off."""
        return sum(self.bleu[-3:]) / len(self.bleu[-3:])

    def minutes_to(self, bleu: float) -> float | None:
        """When this BLEU was first reached, between two validations on the line that joins them."""
        for place, value in enumerate(self.bleu):
            if value >= bleu:
                if not place:
                    return self.minutes[0]
                before, now = self.bleu[place - 1], value
                share = (bleu - before) / (now - before)
                return self.minutes[place - 1] + share * (self.minutes[place] - self.minutes[place - 1])
        return None


def train(name: str, settings: tuple[str, ...], arguments: argparse.Namespace, folder: Path) -> Curve:
    """Run `dragoman train` for the given minutes and read its journal."""
    output = folder / name
    assignments = [f"model.{part}" for part in SHAPE]
    assignments += ["tokenizer.vocab_size=8000", f"train.validate_steps={arguments.validate_steps}", *settings]
    command = [sys.executable, "-m", "dragoman", "train", str(arguments.train), "--valid", str(arguments.valid)]
    command += ["--from", "fr", "--to", "en", "--output", str(output), "--budget", f"{arguments.minutes}m"]
    command += [part for assignment in assignments for part in ("--set", assignment)]
    print(shlex.join(["dragoman", *command[3:]]), flush=True)
    subprocess.run(command, check=True)
    events = [json.loads(line) for line in (output / "training.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [event for event in events if event["event"] == "validation"]
    minutes, bleu = ([event["seconds"] / 60 for event in found], [event["bleu"] for event in found])
    plan = json.loads((output / "run" / "run.json").read_text(encoding="utf-8"))["plan"]
    return Curve(minutes, bleu, found[-1]["step"], plan["recipe"]["train"]["batch_tokens"])


def draw(curves: dict[str, Curve], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for name, curve in curves.items():
        axes.plot(curve.minutes, curve.bleu, marker="o", markersize=3, color=COLOURS[name], label=name)
    axes.set(xlabel="minutes of training", ylabel="BLEU of 300 validation pairs, greedy", ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=Path, default=DATA / "train.tsv.gz", help="French and English, TSV")
    parser.add_argument("--valid", type=Path, default=DATA / "valid.tsv.gz", help="to score, likewise")
    parser.add_argument("--minutes", type=int, default=40, help="for each of the two")
    parser.add_argument("--plain-warmup", type=int, default=400, help="steps over which the plain run's rate climbs")
    parser.add_argument("--validate-steps", type=int, default=100)
    parser.add_argument("--output", type=Path, help="a figure to draw")
    arguments = parser.parse_args()
    for path in (arguments.train, arguments.valid):
        if not path.is_file():
            parser.error(f"there is no {path}: give --train and --valid")
    with tempfile.TemporaryDirectory() as folder:
        ours = train("dragoman", OURS, arguments, Path(folder))
        settings = (f"train.warmup_steps={arguments.plain_warmup}", f"train.batch_tokens={ours.batch_tokens}")
        plain = train("plain", (*PLAIN, *settings), arguments, Path(folder))
    curves = dict(zip(COLOURS, (ours, plain), strict=True))
    for name, curve in curves.items():
        points = "  ".join(f"{m:.0f}: {b:.1f}" for m, b in zip(curve.minutes, curve.bleu, strict=True))
        print(f"{name}, {curve.steps} steps of {curve.batch_tokens} pieces, minutes: BLEU  {points}")
    if plain.steps < 2 * arguments.plain_warmup:
        print(f"the plain run had {plain.steps} steps, {arguments.plain_warmup} to warm up: give more --minutes")
    taken, wanted, whole = ours.minutes_to(plain.end()), plain.end(), plain.minutes[-1]
    if taken is None:
        print(f"ours did not reach {wanted:.1f} BLEU; it has {ours.end():.1f} at its end")
    else:
        print(f"{wanted:.1f} BLEU: ours {taken:.1f} minutes, plain {whole:.1f}, ratio {taken / whole:.2f}")
    if arguments.output:
        draw(curves, arguments.output)


if __name__ == "__main__":
    main()
