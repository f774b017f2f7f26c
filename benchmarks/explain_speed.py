"""How soon does the page answer? Every question that a click asks of `dragoman serve`, timed over HTTP.

    python benchmarks/explain_speed.py                    the model in the box, a sentence of ten words
    python benchmarks/explain_speed.py --model FOLDER --text "..."

The goal is well under a second for a sentence of ten words. The first trace is listed apart: it loads torch and the
model.
"""

import argparse
import json
import statistics
import time
import urllib.request
from typing import Any

from serve_load import dragoman_server

TEXT = "L'animal n'a pas traversé la rue parce qu'il était fatigué."


def ask(port: int, route: str, body: dict[str, Any]) -> tuple[float, bytes]:
    """-> seconds, and the answer."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/explain/{route}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    begin = time.perf_counter()
    with urllib.request.urlopen(request, timeout=60) as answer:
        content = answer.read()
    return time.perf_counter() - begin, content


def questions(text: str, trace: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """What can be clicked on, as the page asks it."""
    plain = {"text": text}
    first, second = trace["steps"][:2]
    forced = [first["chosen"]["id"], second["top"][1]["id"]]
    words = text.split()
    return {
        "a trace": ("trace", plain),
        "another next piece": ("trace", {**plain, "prefix": forced}),
        "a head switched off": ("trace", {**plain, "off": ["encoder.0.self_attention.0"]}),
        "a word deleted, side by side": (
            "compare",
            {"request": plain, "changed": {"text": " ".join([words[0], *words[2:]])}},
        ),
        "beam 8": ("trace", {**plain, "beam": 8}),
        "beam 16": ("trace", {**plain, "beam": 16}),
        "length penalty 1.5": ("trace", {**plain, "length_penalty": 1.5}),
        "every word left out in turn": ("importance", {"request": plain}),
        "every head switched off in turn": ("effects", {"request": plain}),
        "the words shuffled, no positions": ("shuffle", {"request": plain}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="fr-en", help="a model folder, or its name in the box")
    parser.add_argument("--text", default=TEXT)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    arguments.workers, arguments.beam = 1, 0
    with dragoman_server(arguments) as server:
        first, content = ask(server.port, "trace", {"text": arguments.text})
        print(f"{'the first trace':<34} {1000 * first:7.0f} ms")
        for name, (route, body) in questions(arguments.text, json.loads(content)).items():
            times = [ask(server.port, route, body)[0] for _ in range(arguments.rounds)]
            print(f"{name:<34} {1000 * statistics.median(times):7.0f} ms, at most {1000 * max(times):.0f}")


if __name__ == "__main__":
    main()
