"""`python -m contamination`: the command `contamination`."""

from contamination.cli.main import main

if __name__ == "__main__":
    main()
