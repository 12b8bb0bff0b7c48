"""What a recipe will take before it runs: GPU memory by role, tokens a step, hours, bytes of checkpoints.

Pure arithmetic over a recipe, a model's dimensions and named assumptions (`EstimateSettings`); no GPU, no
network, no weights. None of it was measured on a GPU: it tells what cannot fit and what costs days, not
percentages.
"""
