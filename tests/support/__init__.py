"""What several tests share: a real local server, and replies rendered as their providers stream them."""
