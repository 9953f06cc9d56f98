"""The formula of each layer (its "meaning"), written once with the functions of the array API.

Each public function in `layers/` uses its formula, unless the backend has a faster way, which is
tested against the formula. `backends/composed.py` makes the formulas methods of a backend.
"""
