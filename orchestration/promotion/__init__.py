"""Promotion on evidence: pure gates over two evaluations, each with a typed record."""
