"""Differentiation: transforms written once on top of the verbs of the backends."""
