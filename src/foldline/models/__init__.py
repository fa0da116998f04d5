"""The model table: vendors, windows, prices, cache and image rules."""
