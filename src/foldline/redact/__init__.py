"""Removal of secrets: `redact.py` replaces them in a text; the modules with patterns say what to look for."""
