"""Digests: the texts that replace the folded messages of a conversation."""
