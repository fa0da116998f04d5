"""Plot a replay: the cost of each policy, and the request sizes of the largest session."""

from __future__ import annotations

import io
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from foldline.cli.shared.files import write_file
from foldline.cli.shared.output import plural
from foldline.errors import ConfigError, extra_hint

KINDS = (".png", ".svg")
SIZE_INCHES = (11.0, 4.2)
DOTS_PER_INCH = 120
GREY = "#888888"


def check(file: str) -> None:
    """Raise an error if the file's ending is not a known image type, or if matplotlib is missing."""
    if Path(file).suffix.lower() not in KINDS:
        raise ConfigError(
            f"cannot draw {file}: unknown image type", hint=f"use a name that ends in {' or '.join(KINDS)}"
        )
    if find_spec("matplotlib") is None:
        raise ConfigError("drawing needs matplotlib", hint=extra_hint("plot"))


def draw(report: dict[str, Any], file: str) -> None:
    """Draw a replay report into a file."""
    from matplotlib.figure import Figure  # noqa: PLC0415  # an extra, and slow to load

    figure = Figure(figsize=SIZE_INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    _costs(left, report)
    _timeline(right, report)
    buffer = io.BytesIO()
    kind = Path(file).suffix.lower().removeprefix(".")
    figure.savefig(buffer, format=kind, metadata={"Date": None} if kind == "svg" else None)
    write_file(file, [buffer.getvalue()])


def _costs(axes: Any, report: dict[str, Any]) -> None:
    """One bar for each policy and one for sending everything."""
    totals = report["policies"]
    money = any(row["cost_everything"] for row in totals)
    one, all_of_it = ("cost", "cost_everything") if money else ("sent", "everything")
    names = ["everything", *(row["policy"] for row in totals)]
    values = [totals[0][all_of_it], *(row[one] for row in totals)]
    colours = [GREY, *(f"C{index}" for index in range(len(totals)))]
    bars = axes.barh(names, values, color=colours)
    for bar, row in zip(bars[1:], totals, strict=True):
        if row["refused"]:  # without the refused requests, the cost is not comparable
            bar.set(fill=False, hatch="///", edgecolor=GREY)
    refused = [0, *(row["refused"] for row in totals)]
    texts = [f"${value:,.2f}" if money else f"{value:,.0f}" for value in values]
    axes.bar_label(
        bars,
        [
            f" {plural(count, 'request')} refused" if count else f" {text}  {value / max(values[0], 1e-12):.0%}"
            for text, value, count in zip(texts, values, refused, strict=True)
        ],
    )
    axes.invert_yaxis()
    axes.set_xlim(right=max(values) * 1.45 or 1)
    axes.set_xticks([])
    axes.spines[["top", "right", "bottom"]].set_visible(False)
    what = "cost of what is sent" if money else "tokens sent"
    numbers = f"{plural(totals[0]['sessions'], 'session')}, {plural(totals[0]['requests'], 'request')}"
    axes.set_title(f"{what}: {numbers}", fontsize=10)


def _timeline(axes: Any, report: dict[str, Any]) -> None:
    """The request sizes of the largest session, one line for each policy."""
    longest = max(report["sessions"], key=lambda row: row["whole"])
    rows = [
        row for row in report["sessions"] if row["file"] == longest["file"] and row["messages"] == longest["messages"]
    ]
    for index, row in enumerate(rows[: len(report["policies"])]):
        sizes = [size or float("nan") for size in row["sizes"]]
        axes.plot(range(1, len(sizes) + 1), sizes, color=f"C{index}", label=row["policy"], linewidth=1.4)
    for name in ("window", "usable"):
        axes.axhline(longest[name], color=GREY, linestyle=":" if name == "window" else "--", linewidth=1)
        axes.annotate(f" {name}", (1, longest[name]), color=GREY, fontsize=8, va="bottom")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _position: f"{value / 1000:,.0f}k")
    axes.set_xlabel("request")
    axes.set_ylabel("tokens")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    axes.set_title(f"requests of the largest session, {Path(longest['file']).name.partition('.')[0][:20]}", fontsize=10)
