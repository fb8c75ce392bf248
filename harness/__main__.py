"""`python -m draftboard`."""

from draftboard.cli import main

if __name__ == "__main__":
    main()
