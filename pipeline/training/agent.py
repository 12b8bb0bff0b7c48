"""The file that OpenRLHF loads by path as its agent; what it holds is imported.

OpenRLHF executes the file under a made-up module name, so a class defined here could be neither resolved by
pydantic nor unpickled by the trainer. This one only points to `pipeline.training.rollout`.
"""

from pipeline.training.rollout import AgentExecutor as AgentExecutor
