"""Pictures of the page's views, for README and docs: from a server that runs, into docs/images.

dragoman serve --port 5000 &
python docs/screenshots.py http://127.0.0.1:5000
"""

import shutil
import sys
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent / "images"
LARGEST_BYTES = 200_000
SHOTS: dict[str, dict[str, str | int]] = {
    "threads": {},
    "threads-dark": {},
    "threads-heads": {"mode": "heads", "heads": "0.1", "step": 3},
    "threads-phone": {},
    "map": {"view": "map", "kind": "encoder_self"},
    "arithmetic": {"view": "microscope", "kind": "encoder_self", "layer": 1, "query": 4},
    "next-piece": {"view": "next", "step": 3},
    "beam": {"view": "beam"},
    "what-matters": {"view": "matters"},
    "what-if": {"view": "whatif"},
    "positions": {"view": "positions", "column": 8},
    "training": {"view": "replay"},
    "lesson": {"lesson": 4},
}


def prepare(page: Page, name: str) -> None:
    """What a person would have clicked by then."""
    if name.startswith("threads") and "heads" not in name and "phone" not in name:
        page.locator(".column.queries .word").nth(1).hover()
    if name == "what-if":
        page.locator(".wordbox .drop").nth(2).click()
        page.click("[data-name=compare]")
        page.wait_for_selector(".version.after")
        page.locator(".compare").scroll_into_view_if_needed()
    if name == "positions":
        page.click("[data-name=shuffle]")
        page.wait_for_selector(".shuffled tbody")


def main(address: str, folder: Path = IMAGES) -> None:
    """Each view once; views that the model has not are left out."""
    folder.mkdir(parents=True, exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for name, state in SHOTS.items():
            size = {"width": 390, "height": 844} if name.endswith("phone") else {"width": 1280, "height": 800}
            scheme = "dark" if name.endswith("dark") else "light"
            context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
            page = context.new_page()
            page.goto(f"{address}/#{urlencode(state)}")
            page.wait_for_selector(".line.target .chip")
            if page.locator(f"#tab-{state.get('view', 'threads')}").is_visible():
                page.wait_for_load_state("networkidle")
                prepare(page, name)
                image = page.screenshot(path=folder / f"{name}.png")
                print(f"{name}.png: {len(image)} bytes" + (" (too large)" if len(image) > LARGEST_BYTES else ""))
            context.close()
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:5000")
