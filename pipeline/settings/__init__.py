"""The configuration of a run: one typed tree, read from recipes in YAML."""
