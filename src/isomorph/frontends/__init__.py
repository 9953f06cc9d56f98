"""Functions of other libraries, with their signatures, on the arrays of every backend."""
