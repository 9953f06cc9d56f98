"""`python -m isomorph`: the command line, where the command `isomorph` is not on the path."""

from .cli.command import main

if __name__ == "__main__":
    raise SystemExit(main())
