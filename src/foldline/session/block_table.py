"""Computes the tokens of each block so that they add up to the measured size of the request."""

from __future__ import annotations

from collections.abc import Mapping

from foldline.plan.gate import HIDDEN


def scale_blocks(blocks: Mapping[str, int], total: int, *, hidden: int) -> dict[str, int]:
    """The estimates of the blocks, scaled so that they add up to `total`.

    Of the total, `hidden` tokens become a block of their own. If all estimates are 0, the whole total becomes this
    block.

    >>> scale_blocks({"tools": 100, "history": 300}, 540, hidden=100)
    {'tools': 110, 'history': 330, 'hidden': 100}

    """
    estimated = sum(blocks.values())
    apart = total if not estimated else max(0, min(hidden, total))
    scaled, before, placed = {}, 0, 0
    for name, size in blocks.items():
        before += size
        upto = before * (total - apart) // estimated if estimated else 0
        scaled[name], placed = upto - placed, upto
    return {**scaled, HIDDEN: apart} if apart else scaled
