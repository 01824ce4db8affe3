"""Benchmarks behind the figures in the documentation; each module has `run` and `format`."""
