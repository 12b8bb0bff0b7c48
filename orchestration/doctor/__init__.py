"""`march doctor`: what of this machine, of a cluster and of the servers around is as the pipeline needs it.

Each subject is one file. Nothing is changed but a probe key, which is removed.
"""
