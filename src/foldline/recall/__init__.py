"""Recall: searches everything in the ledger, and reads messages back by handle."""
