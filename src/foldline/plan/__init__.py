"""Decides what to fold, without a clock, I/O or a model: gate, cut, prune, media budget, cost of a fold."""
