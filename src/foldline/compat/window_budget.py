"""The window budget under the name of this folder; `foldline.window_budget` is the documented package."""

from __future__ import annotations

from foldline.window_budget import *  # noqa: F403 (the names are listed in `__all__` there)
from foldline.window_budget import __all__ as __all__  # noqa: PLC0414 (for `*` from here)
