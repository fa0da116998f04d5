"""Extraction of facts, identifiers and file contents from messages."""
