"""Data, training and evaluation: what turns the audit into a fine-tuned policy."""
