"""Retraining: prepare, train, evaluate, publish, register, promote; resumable, idempotent by content."""
