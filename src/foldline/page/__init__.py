"""The web page: a JSON API over a ledger, and the static files that show the ledger in a browser."""
