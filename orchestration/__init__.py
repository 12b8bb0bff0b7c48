"""What runs around audits and trainings: the command line."""
