"""The demo: a policy measured against known answers, trained with MARCH, and measured again.

`run.py` does all of it (`march demo`), on any recipe whose rows belong to a world (`pipeline/worlds`):
the made-up one (`make demo`) or real text (`make real`, which warms the model up first). `evaluate.py`
measures, `figures.py` draws and `report.py` says what came of it.
"""
