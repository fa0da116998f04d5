"""Removal of secrets: `redact.py` replaces them in a text; `patterns.py` and `context_patterns.py` say what to look for."""
