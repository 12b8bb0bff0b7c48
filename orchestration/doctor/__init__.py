"""`march doctor`: what of this machine, its packages and its store is as the pipeline needs it.

Each subject is one file. Nothing is changed but a probe key, which is removed.
"""
