"""What decides: the numbers that need a check, the claims that cover them, the evidence and the vote.
Pure."""
