"""From a recipe to running processes: OpenRLHF's command line, the worker, the reward servers beside it."""
