"""Worlds: rows whose truth is known, so that a reward can be held against it.

`world.py` says what a world is, `judge.py` judges an answer to any of its rows. `tiny.py` is the made-up
world of `pipeline/tiny`; `wiki/` asks real paragraphs of Wikipedia for facts that are known.
"""
