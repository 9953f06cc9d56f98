"""Functions of neural networks: each has a door that checks its arguments once, in one wording, and
a meaning in the vocabulary of every backend, which a backend may override with its own.
"""
