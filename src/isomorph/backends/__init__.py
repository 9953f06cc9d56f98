"""One class a framework. Only `dispatch` loads these, each when its first array arrives."""
