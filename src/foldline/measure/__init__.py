"""Counts the tokens of texts, media, messages and whole requests."""
