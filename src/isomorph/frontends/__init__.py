"""Functions of other libraries, with the same signatures, for the arrays of every backend."""
