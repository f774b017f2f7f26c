"""Minutes until a model is good: our default training against plain Adam with the paper's schedule.

The goal is what the plain run has at its end, in a third of its time: so it gets --minutes, and ours a third of them.
Both train the same shape on the same pairs, cut into the same pieces, on this machine, one after the other, in batches
of the same size, that which ours plans. BLEU is that of 300 validation pairs, greedy, at every validation, and of all
of them, with a beam, when the models are finished. The ratio is the time that ours took to reach what the plain run has
at its end, the mean of its last three validations, over the plain run's time. The paper's 4,000 steps of warm-up would
take up most of the time: the plain run's are fewer (--plain-warmup), so that its rate falls too, from the peak that the
paper's formula has after 4,000 steps.

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
PLAIN = (
    "train.optimizer=adam", "train.schedule=paper", f"train.learning_rate={PEAK:.6f}", "train.embedding_start=random",
    "model.norm_order=post", "model.dropout=0.1",
)  # fmt: skip
COLOURS = {"dragoman": "#0072B2", "plain Adam, paper's schedule": "#D55E00"}


@dataclass(frozen=True)
class Curve:
    """BLEU and loss after so many minutes, validation by validation, in a run of so many steps of so many target
    pieces, and the BLEU of the finished model on all pairs.
    """

    minutes: list[float]
    bleu: list[float]
    loss: list[float]
    finished: float
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


def train(name: str, settings: tuple[str, ...], minutes: float, arguments: argparse.Namespace, folder: Path) -> Curve:
    """Run `dragoman train` for the given minutes, read its journal and score its model."""
    output = folder / name
    assignments = [f"model.{part}" for part in SHAPE]
    # Long runs would try to compile, short ones would not: so neither.
    assignments += [
        "tokenizer.vocab_size=8000",
        "train.compile=off",
        f"train.validate_steps={arguments.validate_steps}",
        *settings,
    ]
    command = [sys.executable, "-m", "dragoman", "train", str(arguments.train), "--valid", str(arguments.valid)]
    command += ["--from", "fr", "--to", "en", "--output", str(output), "--budget", f"{60 * minutes:.0f}s"]
    command += [part for assignment in assignments for part in ("--set", assignment)]
    run(command)
    events = [json.loads(line) for line in (output / "training.jsonl").read_text(encoding="utf-8").splitlines()]
    found = [event for event in events if event["event"] == "validation"]
    times, bleu, loss = ([event[key] for event in found] for key in ("seconds", "bleu", "loss"))
    plan = json.loads((output / "run" / "run.json").read_text(encoding="utf-8"))["plan"]
    scoring = [
        "evaluate",
        "--model",
        str(output),
        "--test",
        str(arguments.valid),
        "--from",
        "fr",
        "--to",
        "en",
        "--json",
    ]
    scores = json.loads(run([sys.executable, "-m", "dragoman", *scoring]))["scores"]
    finished = next(score["value"] for score in scores if score["name"] == "BLEU")
    batch_tokens = plan["recipe"]["train"]["batch_tokens"]
    return Curve([second / 60 for second in times], bleu, loss, finished, found[-1]["step"], batch_tokens)


def run(command: list[str]) -> str:
    """A command of ours, which is printed; -> what it prints to standard output."""
    print(shlex.join(["dragoman", *command[3:]]), flush=True)
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


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
    parser.add_argument("--minutes", type=int, default=40, help="for the plain run; ours gets a third")
    parser.add_argument("--plain-warmup", type=int, default=400, help="steps over which the plain run's rate climbs")
    parser.add_argument("--validate-steps", type=int, default=150)
    parser.add_argument("--output", type=Path, help="a figure to draw")
    arguments = parser.parse_args()
    for path in (arguments.train, arguments.valid):
        if not path.is_file():
            parser.error(f"there is no {path}: give --train and --valid")
    with tempfile.TemporaryDirectory() as folder:
        ours = train("dragoman", OURS, arguments.minutes / 3, arguments, Path(folder))
        settings = (f"train.warmup_steps={arguments.plain_warmup}", f"train.batch_tokens={ours.batch_tokens}")
        plain = train("plain", (*PLAIN, *settings), arguments.minutes, arguments, Path(folder))
    curves = dict(zip(COLOURS, (ours, plain), strict=True))
    for name, curve in curves.items():
        print(f"{name}, {curve.steps} steps of {curve.batch_tokens} pieces; finished: {curve.finished:.1f} BLEU")
        for minutes, bleu, loss in zip(curve.minutes, curve.bleu, curve.loss, strict=True):
            print(f"  {minutes:5.1f} minutes: {bleu:4.1f} BLEU, loss {loss:.3f}")
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
