"""What arrays and their namespaces are, for type checkers and for signatures."""
