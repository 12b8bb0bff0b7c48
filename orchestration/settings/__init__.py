"""Options of the command line and keys of a job as typed settings."""
