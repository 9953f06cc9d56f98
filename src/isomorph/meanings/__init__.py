"""What each layer computes, in the words of the vocabulary: the meaning behind each door in
`layers/`, and the oracle of every fast path. `backends/composed.py` makes them
methods of a backend.
"""
