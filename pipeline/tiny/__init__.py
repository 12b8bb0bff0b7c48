"""The tiny policy: a made-up world and a model of 0.9 million parameters that plays all roles in it.

With it the whole pipeline really runs, and really learns, on two processor cores. `world.py` makes
queries, `truth.py` judges answers to them, and `supervised.py` makes `checkpoint/`, where reinforcement
starts. Nothing here is needed for a real model.
"""
