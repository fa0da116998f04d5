"""Draw docs/images/window.svg: the size of each request of the shipped recording, with and without folds.

python scripts/window_picture.py
"""

from __future__ import annotations

from pathlib import Path

from foldline.policy import Policy
from foldline.replay import CachedCounter, replay
from foldline.wire import read

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "images" / "window.svg"
RECORDING = ROOT / "src" / "foldline" / "cli" / "demo.json.gz"
WINDOW = 32_000
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 260, 52, 130, 22, 34


def picture() -> str:
    """The picture as SVG text."""
    transcript = read(RECORDING)
    counter = CachedCounter(transcript.model)
    folded = replay(
        transcript, Policy.preset("balanced").but(window_tokens=WINDOW), name="balanced", counter=counter
    ).sizes
    whole = replay(
        transcript, Policy.preset("verbatim").but(window_tokens=200_000), name="verbatim", counter=counter
    ).sizes
    top = max(whole) * 1.05
    across = (WIDTH - LEFT - RIGHT) / (len(whole) - 1)

    def height(tokens: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - tokens / top)

    def line(sizes: tuple[int, ...], colour: str, name: str) -> str:
        points = " ".join(f"{LEFT + at * across:.1f},{height(size):.1f}" for at, size in enumerate(sizes))
        end = f'x="{WIDTH - RIGHT + 8}" y="{height(sizes[-1]) + 4:.1f}"'
        return (
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>\n'
            f'<text {end} fill="{colour}">{name}</text>'
        )

    limit = height(WINDOW)
    ticks = [
        f'<text x="{LEFT - 8}" y="{height(tokens) + 4:.1f}" text-anchor="end" fill="#888">{tokens // 1000}k</text>'
        for tokens in range(0, int(top), 20_000)
    ]
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    return "\n".join(
        [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
                'font-size="12" role="img" aria-label="Tokens of each request, with and without folds">'
            ),
            (
                f'<line x1="{LEFT}" y1="{limit:.1f}" x2="{WIDTH - RIGHT}" y2="{limit:.1f}" stroke="#c33" '
                'stroke-dasharray="5 4"/>'
            ),
            f'<text x="{WIDTH - RIGHT + 8}" y="{limit + 4:.1f}" fill="#c33">window, {WINDOW // 1000}k</text>',
            *ticks,
            (
                f'<text x="{middle:.0f}" y="{HEIGHT - 8}" text-anchor="middle" fill="#888">{len(whole)} requests of '
                "one recorded coding session</text>"
            ),
            line(whole, "#888", "everything sent"),
            line(folded, "#2a7", "with foldline"),
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text(picture())
    print(f"wrote {TARGET.relative_to(ROOT)}")
