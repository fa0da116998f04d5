"""The databases that can store a ledger: one module each, with the SQL that differs between them."""
