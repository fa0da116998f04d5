"""Benches: `python -m bench NAME ...` runs `bench.NAME.main(argv)`."""
