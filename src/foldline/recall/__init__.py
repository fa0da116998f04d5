"""Recall: search of everything in the ledger, and reading it back by handle."""
