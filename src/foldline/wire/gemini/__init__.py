"""Gemini contents."""
