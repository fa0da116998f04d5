"""Recall: searches all messages in the ledger, and returns messages by their handle."""
