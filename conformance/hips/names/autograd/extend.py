"""What autograd shows to those who extend it."""
