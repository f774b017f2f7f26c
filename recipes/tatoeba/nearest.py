"""Of what a model finds for each English sentence, the French that is most like what people wrote.

    python recipes/tatoeba/nearest.py --forward en-fr --output more

writes nearest.tsv: a pair for each English sentence of the training set, but for French that is held out by chance. A
model that learns from it is told which of its own translations were the better ones (sequence-level interpolation, Kim
and Rush 2016); where several people translated a sentence, by what they have in common.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from more_pairs import DATA, pairs, sentences_of, write_lines
from sacrebleu.metrics import BLEU
from split import bare

from dragoman import load

NUM_FOUND = 6
MOST_REFERENCES = 6


def nearest(found: Sequence[str], references: Sequence[str], bleu: BLEU) -> str:
    """The one with the highest BLEU in the mean over references; of equals the first."""
    return max(found, key=lambda one: sum(bleu.sentence_score(one, [reference]).score for reference in references))


def by_english(corpus: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Each English sentence's French, of (French, English)."""
    references: dict[str, list[str]] = {}
    for french, english in corpus:
        references.setdefault(english, []).append(french)
    return references


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--corpus", type=Path, default=DATA / "tatoeba-fr-en", help="French-English, three TSV files")
    parser.add_argument("--forward", required=True, help="the English-French model")
    parser.add_argument("--output", type=Path, required=True, help="a folder for the pairs")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    references = by_english(pairs(arguments.corpus / "train.tsv.gz"))
    held_out = sentences_of(pairs(arguments.corpus / "valid.tsv.gz"), pairs(arguments.corpus / "test.tsv.gz"))
    translator, bleu = load(arguments.forward), BLEU(effective_order=True)
    translations = translator.stream(references, alternatives=NUM_FOUND - 1, guards=False, split_sentences=False)
    rows = [
        (english, nearest([found.text, *found.alternatives], french[:MOST_REFERENCES], bleu))
        for (english, french), found in zip(references.items(), translations, strict=True)
    ]
    kept = [pair for pair in rows if held_out.isdisjoint(map(bare, pair))]
    write_lines(arguments.output / "nearest.tsv", map("\t".join, kept))
    print(f"nearest: {len(kept):,} pairs")


if __name__ == "__main__":
    main()
