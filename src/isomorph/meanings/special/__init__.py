"""Special functions over the vocabulary: their values, and their derivatives as formulas."""
