"""The documented APIs of other systems, thin, on the one engine: each face translates words and decides nothing."""
