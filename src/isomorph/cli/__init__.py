"""The command line, and what is installed."""
