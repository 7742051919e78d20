"""`python -m reproduction STAGE`: the stages that `make` calls.

Exit status: 0 done; 1 done, and a run differs from the reference; 2 bad input, explained in one
line on standard error; 130 interrupted.
"""

from contamination.cli.main import run
from reproduction.stages.costs import costs
from reproduction.stages.stage import app

app.command()(costs)


def main() -> None:
    """Run a stage; bad input becomes one line, without a traceback."""
    run(app)


if __name__ == "__main__":
    main()
