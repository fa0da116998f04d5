"""Provider bytes to messages and back."""
