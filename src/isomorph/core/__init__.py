"""The ground floor: which backend handles an array, what backends have in common, nests, dtypes."""
