"""Training: steps, whole trainings, evaluation, checkpoints."""
