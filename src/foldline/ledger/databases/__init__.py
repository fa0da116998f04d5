"""The databases a ledger can live in: one module each, with the SQL that differs between them."""
