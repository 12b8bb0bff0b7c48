"""A package, since OpenRLHF's wheel brings one of this name that `python -m bench` would import instead."""
