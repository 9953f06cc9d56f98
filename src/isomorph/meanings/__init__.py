"""The formula of each layer (its "meaning") over the array API: behind each public function in
`layers/`, and the reference that every fast path is tested against. `backends/composed.py` makes
them methods of a backend.
"""
