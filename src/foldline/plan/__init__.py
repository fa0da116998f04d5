"""Decides what to fold: gate, cut, prune, media budget and cost of a fold.

This package uses no clock, no I/O and no model.
"""
