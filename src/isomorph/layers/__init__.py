"""Functions of neural networks. Each has a public function (a "door") that checks its arguments
once, with one set of messages, and a "meaning": its formula over the array API, which a backend may
override.
"""
