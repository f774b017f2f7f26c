"""`dragoman demo`: what the models in the box can do, in a few seconds."""

from __future__ import annotations

import functools
import os
import shutil
import sys

import click

DRAWN = "what stands for what"
SENTENCES = {
    ("fr", "en"): (
        ("a sentence that it has seen", "Je suis étudiant."),
        (DRAWN, "L'animal n'a pas traversé la rue parce qu'il était trop fatigué."),
        ("a question", "À quelle heure part le dernier bus ce soir ?"),
        ("written carelessly", "je ne sais pas ou il habite"),
        ("two sentences, a number", "Attends-moi ! J'arrive dans 20 minutes."),
    ),
    ("en", "fr"): (
        ("the other way", "My brother lost his keys yesterday."),
        ("capitals", "DO NOT OPEN THE WINDOW."),
    ),
}
"""What is shown: a few words about a sentence, and the sentence."""
NEXT_STEPS = (
    ('translate "Où est la gare ?"', "your own sentence; --help has files, glossaries, JSON"),
    ("serve", "the same in your browser, with a look inside, at http://127.0.0.1:5000"),
    ('explain "Je suis étudiant."', "what each head looked at"),
    ("train pairs.tsv --from xx --to yy --output mine", "a translator of your own"),
)


@click.command(name="demo", short_help="Show what the models in the box can do.")
def command() -> None:
    """Translate a few sentences with the models in the box, draw which words belong together, say what to try next."""
    from dragoman.bundle import find_direction
    from dragoman.cli._alignment import draw_alignment
    from dragoman.text.language_names import name_of
    from dragoman.translator import load

    open_once = functools.cache(functools.partial(load, workers=1))  # one model may do both ways
    for (source, target), examples in SENTENCES.items():
        translator = open_once(find_direction(source, target))
        click.secho(f"{name_of(source)} to {name_of(target)}\n", bold=True)
        texts = [text for _, text in examples]
        translations = translator.translate(texts, align=True, source=source, target=target)
        for (kind, text), translation in zip(examples, translations, strict=True):
            click.echo(
                f"  {text}  {click.style(f'({kind})', dim=True)}\n  {click.style(translation.text, bold=True)}\n"
            )
            if kind == DRAWN:
                drawn = draw_alignment(translation.sentences[0], shutil.get_terminal_size().columns - 4)
                click.echo("".join(f"    {line}\n" for line in drawn.splitlines()))
    click.secho("What to try next\n", bold=True)
    name = program_name()
    width = max(len(arguments) for arguments, _ in NEXT_STEPS)
    for arguments, what in NEXT_STEPS:
        click.echo(f"  {name} {arguments:{width}}  {click.style(what, dim=True)}")


def program_name() -> str:
    """What to type for this very program: its name where the shell finds it by that, else the path from here."""
    called = sys.argv[0]
    found = shutil.which("dragoman")
    if found and os.path.realpath(found) == os.path.realpath(called):
        return "dragoman"
    return os.path.relpath(called) if os.path.basename(called) == "dragoman" else "python -m dragoman"
