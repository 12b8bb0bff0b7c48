"""Evaluation: benchmarks asked of a model, judged by a pinned judge, with intervals."""
