"""How fast is `dragoman translate`? Against bare CTranslate2 and transformers, in one run, on the same shape.

    python benchmarks/translate_speed.py                      a random `small` model, sentences of a made-up language
    python benchmarks/translate_speed.py --model FOLDER       a model of yours, without transformers beside it
    python benchmarks/translate_speed.py --million            memory of a million lines, streamed through a tiny model

The random model writes 15 pieces for every sentence, so that all systems do the same work: a dimension of its
positions is kept for the end piece alone. Every system is timed in turn, several times over, and the best time counts;
only the ratios mean something, as machines differ and are busy.
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

PIECES = 15
VOCABULARY = 8000
MILLION_SHAPE = {
    "d_model": 32,
    "d_ff": 64,
    "num_heads": 1,
    "d_k": 32,
    "d_v": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
}
"""Memory does not depend on the model's size, and a million lines through a larger one take an hour."""


def main() -> None:
    arguments = parse()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    with tempfile.TemporaryDirectory() as scratch:
        os.environ.setdefault("DRAGOMAN_CACHE", f"{scratch}/cache")
        lines = make_lines(arguments.sentences)
        shape = MILLION_SHAPE if arguments.million else {}
        folder = Path(arguments.model) if arguments.model else make_bundle(Path(scratch) / "model", lines, shape)
        if arguments.million:
            stream_million(folder, Path(scratch), arguments.million_lines)
            return
        source = Path(scratch) / "source.txt"
        source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        compare_batches(folder, lines, arguments)
        compare_commands(folder, source, lines, arguments)
        if not arguments.model and not arguments.without_transformers:
            compare_transformers(folder, lines, arguments)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a model folder; a random one is made if it is not given")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--repeat", type=int, default=3, help="times that each system is run; the best counts")
    parser.add_argument("--without-transformers", action="store_true")
    parser.add_argument("--million", action="store_true", help="measure memory on many lines instead")
    parser.add_argument("--million-lines", type=int, default=1_000_000)
    return parser.parse_args()


def make_lines(count: int) -> list[str]:
    """Sentences as long as Multi30k's, of words that follow Zipf's law."""
    draw = random.Random(1)
    syllables = [a + b for a in "bcdfglmnprstv" for b in "aeiou"]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(20_000)]
    weights = [1 / (rank + 1) for rank in range(len(words))]
    lengths = [max(4, round(draw.gauss(12, 4))) for _ in range(count)]
    return [" ".join(draw.choices(words, weights, k=length)).capitalize() + "." for length in lengths]


def make_bundle(folder: Path, lines: Sequence[str], shape: dict[str, Any]) -> Path:
    """A bundle of the preset `small`, or another shape, with random weights, that writes `PIECES` pieces a sentence."""
    import torch

    from dragoman.bundle import Bundle, state_to_weights
    from dragoman.config import preset
    from dragoman.model.transformer import Transformer
    from dragoman.recipe import SearchConfig, TokenizerConfig
    from dragoman.text.tokenizer import Tokenizer

    torch.manual_seed(1)
    tokenizer = Tokenizer.learn([*lines, *make_lines(20_000)], TokenizerConfig(vocab_size=VOCABULARY))
    config = replace(preset("small").model, vocab_size=tokenizer.vocab_size, position="learned", **shape)
    model = Transformer(config)
    with torch.no_grad():
        table_TD, pieces_VD = model.target_embedding.position.table_TD, model.target_embedding.pieces.weight
        table_TD[:, 0] = -30.0
        table_TD[PIECES:, 0] = 30.0
        pieces_VD[:, 0] = 0.0
        pieces_VD[config.end_id, 0] = 3.0
    return Bundle.write(
        folder,
        model_config=config,
        search=SearchConfig(),
        tokenizer=tokenizer,
        weights=state_to_weights(model),
        directions=["xx-yy"],
    ).path


def best_of(repeat: int, systems: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The best time of each system, run in turn."""
    seconds: dict[str, float] = {}
    for _ in range(repeat):
        for name, run in systems.items():
            begin = time.perf_counter()
            run()
            seconds[name] = min(seconds.get(name, float("inf")), time.perf_counter() - begin)
    return seconds


def bare(folder: Path, lines: Sequence[str], beam: int) -> dict[str, Callable[[], Any]]:
    """CTranslate2's own API on the model that dragoman converted, ids made before, with several batch sizes."""
    import ctranslate2

    from dragoman.bundle import Bundle
    from dragoman.engine.convert import convert
    from dragoman.engine.ctranslate2_engine import num_cores

    bundle = Bundle.open(folder)
    tokenizer = bundle.tokenizer
    translator = ctranslate2.Translator(
        str(convert(bundle)), compute_type="int8", inter_threads=num_cores(), intra_threads=1
    )
    tokens = [[str(id) for id in (*ids, tokenizer.end_id)] for ids in tokenizer.ids_batch(lines)]

    def run(size: int) -> Callable[[], Any]:
        return lambda: translator.translate_batch(tokens, max_batch_size=size, beam_size=beam, length_penalty=0.6)

    return {f"bare CTranslate2, batches of {size}": run(size) for size in (16, 32, 64, 128)}


def compare_batches(folder: Path, lines: Sequence[str], arguments: argparse.Namespace) -> None:
    """In one process, models loaded: text to text here, ids to ids there."""
    from dragoman.translator import load

    translator = load(folder)
    systems: dict[str, Callable[[], Any]] = {
        "dragoman, text to text, guards off": lambda: list(translator.stream(lines, guards=False, beam=arguments.beam)),
        "dragoman, text to text, guards on": lambda: list(translator.stream(lines, beam=arguments.beam)),
        **bare(folder, lines, arguments.beam),
    }
    systems["dragoman, text to text, guards off"]()
    seconds = best_of(arguments.repeat, systems)
    report(f"{len(lines)} sentences, beam {arguments.beam}", seconds, len(lines))
    best_bare = min(time for name, time in seconds.items() if name.startswith("bare"))
    ours = seconds["dragoman, text to text, guards off"]
    print(f"dragoman / bare CTranslate2 (tuned), in one process: {best_bare / ours:.3f} of its speed\n")


def compare_commands(folder: Path, source: Path, lines: Sequence[str], arguments: argparse.Namespace) -> None:
    """Fresh processes, from the shell to the answer: a file, and one sentence."""
    target = source.with_name("target.txt")
    command = [sys.executable, "-m", "dragoman", "translate", "--model", str(folder), "--beam", str(arguments.beam)]
    whole = [*command, "--no-guards", "--input", str(source), "--output", str(target)]
    one = [*command, lines[0]]
    tokens = source.with_name("tokens.json")
    script = write_bare_script(folder, lines, tokens, arguments.beam)
    seconds = best_of(
        arguments.repeat,
        {
            "dragoman translate, the file": lambda: subprocess.run(whole, check=True),
            "a script on bare CTranslate2": lambda: subprocess.run([sys.executable, "-c", script], check=True),
            "dragoman translate, one sentence": lambda: subprocess.run(one, check=True, capture_output=True),
        },
    )
    report("whole processes", seconds, len(lines))
    ratio = seconds["a script on bare CTranslate2"] / seconds["dragoman translate, the file"]
    print(f"dragoman / bare CTranslate2, whole processes: {ratio:.3f} of its speed\n")


def write_bare_script(folder: Path, lines: Sequence[str], tokens: Path, beam: int) -> str:
    """A process that loads the converted model and translates tokens that were made before."""
    from dragoman.bundle import Bundle
    from dragoman.engine.convert import convert
    from dragoman.engine.ctranslate2_engine import num_cores

    bundle = Bundle.open(folder)
    ids = bundle.tokenizer.ids_batch(lines)
    tokens.write_text(json.dumps([[str(id) for id in (*one, bundle.tokenizer.end_id)] for one in ids]))
    return (
        "import json, ctranslate2\n"
        f"tokens = json.load(open({str(tokens)!r}))\n"
        f"translator = ctranslate2.Translator({str(convert(bundle))!r}, compute_type='int8', "
        f"inter_threads={num_cores()}, intra_threads=1)\n"
        f"results = translator.translate_batch(tokens, max_batch_size=64, beam_size={beam}, length_penalty=0.6)\n"
        f"open({str(tokens.with_suffix('.out'))!r}, 'w').writelines("
        "' '.join(result.hypotheses[0]) + '\\n' for result in results)\n"
    )


def compare_transformers(folder: Path, lines: Sequence[str], arguments: argparse.Namespace) -> None:
    """`MarianMTModel.generate` on the same shape, batches of 64 by length; and its start in a fresh process."""
    from dragoman.bundle import Bundle
    from dragoman.translator import load

    bundle, checkpoint = Bundle.open(folder), folder.with_name("marian")
    marian = make_marian(bundle)
    marian.save_pretrained(checkpoint)
    ids = sorted(bundle.tokenizer.ids_batch(lines), key=len)
    batches = [pad_batch(ids[start : start + 64]) for start in range(0, len(ids), 64)]
    options = {"num_beams": arguments.beam, "max_new_tokens": PIECES, "min_new_tokens": PIECES}
    translator = load(folder)

    def generate() -> None:
        for batch in batches:
            marian.generate(**batch, **options)

    seconds = best_of(
        max(1, arguments.repeat - 1),
        {
            "dragoman, text to text, guards off": lambda: list(
                translator.stream(lines, guards=False, beam=arguments.beam)
            ),
            "transformers MarianMTModel.generate": generate,
        },
    )
    report("against transformers", seconds, len(lines))
    ratio = seconds["transformers MarianMTModel.generate"] / seconds["dragoman, text to text, guards off"]
    print(f"dragoman / transformers: {ratio:.1f} times its speed")
    script = (
        "import torch\nfrom transformers import MarianMTModel\n"
        f"model = MarianMTModel.from_pretrained({str(checkpoint)!r}).eval()\n"
        f"model.generate(input_ids=torch.tensor([{ids[len(ids) // 2]}]), num_beams={arguments.beam}, "
        f"max_new_tokens={PIECES})\n"
    )
    command = [sys.executable, "-m", "dragoman", "translate", "--model", str(folder), lines[0]]
    start = best_of(
        max(1, arguments.repeat - 1),
        {
            "dragoman translate": lambda: subprocess.run(command, check=True, capture_output=True),
            "transformers": lambda: subprocess.run([sys.executable, "-c", script], check=True, capture_output=True),
        },
    )
    report("from the shell to the first translation", start, 1)
    print(f"dragoman / transformers, start: {start['dragoman translate'] / start['transformers']:.3f} of its time\n")


def make_marian(bundle: Any) -> Any:
    """A random MarianMTModel of the bundle's shape."""
    from transformers import MarianConfig, MarianMTModel

    config = bundle.model_config
    return MarianMTModel(
        MarianConfig(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            encoder_attention_heads=config.num_heads,
            decoder_attention_heads=config.num_heads,
            encoder_ffn_dim=config.d_ff,
            decoder_ffn_dim=config.d_ff,
            activation_function=config.activation,
            max_position_embeddings=config.max_length,
            scale_embedding=True,
            pad_token_id=config.padding_id,
            eos_token_id=config.end_id,
            decoder_start_token_id=config.padding_id,
            forced_eos_token_id=None,
        )
    ).eval()


def pad_batch(ids: Sequence[Sequence[int]]) -> dict[str, Any]:
    import torch

    longest = max(map(len, ids))
    rows = torch.tensor([[*one, *[0] * (longest - len(one))] for one in ids])
    return {"input_ids": rows, "attention_mask": (rows != 0).long()}


def stream_million(folder: Path, scratch: Path, count: int) -> None:
    """Peak memory after a tenth of the lines and after all of them; repeated lines are not translated again."""
    from dragoman.translator import load

    translator = load(folder)
    lines = make_lines(10_000)
    many = (f"{lines[number % len(lines)][:-1]} {number}." for number in range(count))
    begin, early = time.perf_counter(), 0
    for number, _ in enumerate(translator.stream(many, guards=False, beam=1), start=1):
        if number % max(1, count // 10) == 0:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            early = early or round(peak)
            print(f"{number:>9,} lines {time.perf_counter() - begin:8.0f} s, peak memory {peak:6.0f} MiB", flush=True)
    print(f"peak memory at the end / after a tenth: {peak / early:.3f}")


def report(title: str, seconds: dict[str, float], count: int) -> None:
    print(title)
    for name, time_taken in seconds.items():
        print(f"  {name:<40} {time_taken:7.2f} s {count / time_taken:8.1f} sentences/s")


if __name__ == "__main__":
    main()
