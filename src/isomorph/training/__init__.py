"""Training: checkpoints."""
