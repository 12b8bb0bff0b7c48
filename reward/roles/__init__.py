"""The Proposer and the Checker: their prompts, what they may write, how it is read, and how they are
asked."""
