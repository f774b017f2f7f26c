"""Further pairs for English to French, made by the models that there are.

    python recipes/tatoeba/more_pairs.py --forward models/en-fr-first --backward models/fr-en --output more

- back.tsv: the corpus' French, and English that the backward model makes of it (back-translation);
- forward.tsv: the corpus' English, and French that the forward model makes of it (distillation);
- new.tsv: English of the German-English corpus that no French-English file has, and French that the forward model
  proposes and both models judge, where the backward model gets back to the English (self-training).

What is there already is not made again, and an interrupted translation goes on: run it again.
"""

import argparse
import gzip
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from sacrebleu.metrics import CHRF
from split import bare

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
LEAST_CHRF = 60.0
"""Of a sentence's way there and back: below it, one of the two got lost."""


def pairs(path: Path) -> list[tuple[str, str]]:
    """The two columns of a TSV."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = (line.rstrip("\n").split("\t") for line in lines)
        return [(row[0], row[1]) for row in rows]


def sentences_of(*corpora: Iterable[tuple[str, str]]) -> set[str]:
    """All that stands on either side, without case and punctuation."""
    return {bare(sentence) for corpus in corpora for pair in corpus for sentence in pair}


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def translate(folder: Path, name: str, texts: Sequence[str], way: str, *models: str) -> list[str]:
    """Each text's translation, kept in the folder under this name."""
    source, target = way.split("-")
    texts_path, output = folder / f"{name}.{source}", folder / f"{name}.{source}.{target}"
    if not output.exists():
        write_lines(texts_path, texts)
        command = [sys.executable, "-m", "dragoman", "translate", "--no-guards", "--from", source, "--to", target]
        command += ["--model", models[0], *(part for other in models[1:] for part in ("--ensemble", other))]
        subprocess.run([*command, "--input", str(texts_path), "--output", str(output)], check=True)
    return lines_of(output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=DATA / "tatoeba-fr-en", help="French-English, three TSV files")
    parser.add_argument("--english", type=Path, default=DATA / "tatoeba-de-en", help="German-English, likewise")
    parser.add_argument("--forward", required=True, help="the English-French model")
    parser.add_argument("--backward", required=True, help="the French-English model, which goes both ways")
    parser.add_argument("--output", type=Path, required=True, help="a folder for the pairs")
    parser.add_argument("--only", choices=("back", "forward", "new"), help="make these alone")
    arguments = parser.parse_args()
    folder, forward, backward = arguments.output, arguments.forward, arguments.backward
    folder.mkdir(parents=True, exist_ok=True)

    train, valid, test = (pairs(arguments.corpus / f"{name}.tsv.gz") for name in ("train", "valid", "test"))
    french, english = (list(dict.fromkeys(side)) for side in zip(*train, strict=True))
    held_out = sentences_of(valid, test)
    met = held_out.union(map(bare, english))
    others = dict.fromkeys(sentence for _, sentence in pairs(arguments.english / "train.tsv.gz"))
    new = [sentence for sentence in others if bare(sentence) not in met]

    def keep(name: str, english: Iterable[str], french: Iterable[str]) -> None:
        """Write the pairs that share no sentence with the validation and test sets."""
        made = [pair for pair in zip(english, french, strict=True) if held_out.isdisjoint(map(bare, pair))]
        write_lines(folder / f"{name}.tsv", map("\t".join, made))
        print(f"{name}: {len(made):,} pairs")

    if arguments.only in (None, "back"):
        keep("back", translate(folder, "back", french, "fr-en", backward), french)
    if arguments.only in (None, "forward"):
        keep("forward", english, translate(folder, "forward", english, "en-fr", forward))
    if arguments.only in ("back", "forward"):
        return
    there = translate(folder, "new", new, "en-fr", forward, backward)
    back = translate(folder, "returned", there, "fr-en", backward)
    chrf = CHRF()
    kept = [i for i in range(len(new)) if chrf.sentence_score(back[i], [new[i]]).score >= LEAST_CHRF]
    keep("new", (new[i] for i in kept), (there[i] for i in kept))


if __name__ == "__main__":
    main()
