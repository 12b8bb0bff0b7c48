"""The cold start: `march warmup RECIPE`, supervised fine-tuning on the three roles' formats.

A small model, or one that was never tuned for chat, does not write the formats of Proposer and Checker, and
what is never written is never rewarded. `demonstrations.py` says what each role should write, from rows whose
truth is known; `run.py` runs OpenRLHF's own SFT trainer on them; its result is where a training starts.
"""
