"""Removal of secrets: `redact.redact`, with what it looks for in `patterns`."""
