"""What to do, decided without a clock, a file or a model: gate, cut, prune, economy, blocks."""
