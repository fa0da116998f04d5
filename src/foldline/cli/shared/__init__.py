"""Options and functions that several commands share."""
