"""Differentiation: transforms written once, with the methods that each backend must have (its
"verbs", `backends/contract.py`).
"""
