"""Benchmarks: `make bench` runs all, `python -m bench NAME ...` some. Each writes one JSON under
`bench/results/`.

Speed is compared by ratios within one run, because shared machines drift; single times are kept as raw
samples.
"""
