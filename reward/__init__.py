"""The audit: does every number of a response stand in its documents?

A pure core (types, numbers, prompts, parsing, vote) and an HTTP edge (server, client). Nothing here imports
torch, ray, vllm, openrlhf or mlflow at module level, so that an audit installs and starts without the
training stack.
"""
