"""Makes `foldline.window_budget`, the documented package, also available as `foldline.compat.window_budget`."""

from __future__ import annotations

from foldline.window_budget import *  # noqa: F403 (the names are listed in `__all__` there)
from foldline.window_budget import __all__ as __all__  # noqa: PLC0414 (re-exported for `import *`)
