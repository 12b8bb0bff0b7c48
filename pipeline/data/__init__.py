"""Benchmarks as queries with documents, and the rows that OpenRLHF trains on."""
