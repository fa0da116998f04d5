"""Benchmarks. `python -m bench NAME ...` runs `bench.NAME.main(argv)`."""
