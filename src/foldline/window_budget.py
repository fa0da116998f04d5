"""`from foldline.window_budget import create_condenser, ...`: the face `compat.window_budget` under its own name."""

from __future__ import annotations

from foldline.compat.window_budget import *  # noqa: F403 (the names are the face's own list)
from foldline.compat.window_budget import __all__ as __all__  # noqa: PLC0414 (for `*` from here)
