"""The view of a session: composition, cache breakpoints, continuation prompts."""
