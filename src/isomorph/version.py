"""Which isomorph this is; files say by which they were written."""

__version__ = "0.1.0"
