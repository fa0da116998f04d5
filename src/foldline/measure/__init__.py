"""How big things are."""
