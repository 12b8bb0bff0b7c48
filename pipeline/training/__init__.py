"""What runs inside OpenRLHF: rollout and audit, the PPO buffer, the trainer, and what watches over it."""
