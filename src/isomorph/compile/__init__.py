"""Compiled programs: `iso.jit`, what it keeps, checks and reports."""
