"""What a run leaves behind: checkpoints, figures, rollouts, and what a person sees meanwhile."""
