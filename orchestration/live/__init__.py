"""What `march serve` shows while it serves."""
