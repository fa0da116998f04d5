"""Token counts: of texts, media, messages and whole requests."""
