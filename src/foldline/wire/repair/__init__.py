"""Broken histories become sendable: in the view, never in the record."""

from foldline.wire.repair.history import Repaired, repair

__all__ = ["Repaired", "repair"]
