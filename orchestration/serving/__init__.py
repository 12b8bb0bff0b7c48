"""A registered model, served: the version that an alias names now, and the next one when it moves."""
