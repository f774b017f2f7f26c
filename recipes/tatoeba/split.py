"""Make the training, validation and test sets of the recipes out of the pairs of www.manythings.org/anki.

    python recipes/tatoeba/split.py fra.txt --output tatoeba-fr-en

`fra.txt` is the file in that site's French-English archive, English on the left; ours was of 2019-04-07. `held_out.txt`
names the pairs to validate and to test on, by a hash of their words, so that the text itself need not be here. What
shares a sentence with one of them, but for case and punctuation, is left out; all else is to train on.
"""

import argparse
import gzip
import hashlib
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

HELD_OUT = Path(__file__).with_name("held_out.txt")
Pair = tuple[str, str]


def bare(sentence: str) -> str:
    """A sentence's words: no case, no punctuation."""
    return re.sub(r"[\W_]+", " ", unicodedata.normalize("NFC", sentence).casefold()).strip()


def name_of(pair: Pair) -> str:
    return hashlib.sha256("\t".join(map(bare, pair)).encode()).hexdigest()[:10]


def read(path: Path) -> list[Pair]:
    """The archive's pairs, French first, each once, with plain spaces."""
    pairs: dict[Pair, None] = {}
    for line in path.read_text(encoding="utf-8").split("\n"):
        english, _, rest = line.partition("\t")
        french = rest.partition("\t")[0]
        if english and french:
            first, second = (" ".join(unicodedata.normalize("NFC", side).split()) for side in (french, english))
            pairs[first, second] = None
    return list(pairs)


def split(pairs: Iterable[Pair], held_out: Iterable[str]) -> dict[str, list[Pair]]:
    """The sets by name; `held_out` has lines such as `valid 0a1b2c3d4e`."""
    sets: dict[str, list[Pair]] = {"train": [], "valid": [], "test": []}
    place = {name: where for where, name in (line.split() for line in held_out)}
    others = []
    for pair in pairs:
        if where := place.get(name_of(pair)):
            sets[where].append(pair)
        else:
            others.append(pair)
    taken = {bare(side) for where in ("valid", "test") for pair in sets[where] for side in pair}
    sets["train"] = [pair for pair in others if taken.isdisjoint(map(bare, pair))]
    return sets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path, help="fra.txt")
    parser.add_argument("--output", type=Path, required=True, help="a folder for train, valid and test.tsv.gz")
    arguments = parser.parse_args()
    held_out = HELD_OUT.read_text(encoding="utf-8").splitlines()
    sets = split(read(arguments.archive), held_out)
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, pairs in sets.items():
        with gzip.open(arguments.output / f"{name}.tsv.gz", "wt", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{french}\t{english}\n" for french, english in pairs)
    missing = len(held_out) - len({name_of(pair) for where in ("valid", "test") for pair in sets[where]})
    print(", ".join(f"{name} {len(pairs):,} pairs" for name, pairs in sets.items()))
    if missing:
        print(f"{missing:,} of the {len(held_out):,} pairs that are held out are not in {arguments.archive.name}")


if __name__ == "__main__":
    main()
