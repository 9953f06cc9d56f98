"""Optimizers: how parameters move along their gradients."""
