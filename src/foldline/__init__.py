"""Keeps a long LLM conversation inside the model's context window."""
