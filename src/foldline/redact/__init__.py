"""Removal of secrets: `redact.py` replaces them in a text, and `patterns.py` says what to look for."""
