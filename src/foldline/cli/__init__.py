"""The command line: a thin mirror of the library, with plain words for people and `--json` for machines."""

from __future__ import annotations

from foldline.cli.app import main

__all__ = ["main"]
