"""`march doctor`: what of this machine, of a cluster and of the servers around is as the pipeline needs it.

Each subject is one file: a gatherer that looks (with a time-out, changing nothing but a probe key that it
removes) and pure functions from what it saw to findings. `docs/doctor.md` lists the checks.
"""
