"""One class per framework. Only `dispatch` loads these, each when its first array arrives."""
