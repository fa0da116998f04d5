"""`from foldline.window_budget import create_condenser, ...`: the documented name of `compat.window_budget`."""

from __future__ import annotations

from foldline.compat.window_budget import *  # noqa: F403 (the names are listed in `__all__` there)
from foldline.compat.window_budget import __all__ as __all__  # noqa: PLC0414 (for `*` from here)
