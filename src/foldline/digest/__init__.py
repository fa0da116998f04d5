"""Digests: the text that stands for the folded part of a conversation."""
