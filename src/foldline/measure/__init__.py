"""How big things are: counters, the provider's own figures, the sizes of messages, and what is known of models."""
