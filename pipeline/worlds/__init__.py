"""Worlds: rows whose truth is known, so that a reward can be held against it.

`world.py` says what a world is. `wiki/` asks real paragraphs of Wikipedia for facts that are known, and
`judge.py` judges answers to its rows; the made-up world is `pipeline/tiny`.
"""
