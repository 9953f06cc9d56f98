"""Differentiation: the transforms written once above the verbs of the backends."""
