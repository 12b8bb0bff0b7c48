"""The registry: model versions by content in MLflow, and who is champion, by a log that is appended only."""
