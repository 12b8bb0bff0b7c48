"""Evaluation: benchmarks asked of a model, judged by a pinned judge, with intervals.

    items -> prompts -> generations -> judgements -> majority -> scores -> figures -> report

`benchmark.py` is what a benchmark is; each file in `benchmarks/` is one.
"""
