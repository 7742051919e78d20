"""`python -m reproduction STAGE`: the stages that `make` calls.

Exit status: 0 done; 1 done, and a run differs from the reference; 2 bad input,
explained in one line on standard error; 130 interrupted.
"""

from typing import Any

from contamination.cli.ending import run


def main() -> None:
    """Run a stage; bad input becomes one line, without a traceback."""

    def stages(**how: Any) -> Any:
        from reproduction.stages.stage import app

        return app(**how)

    run(stages)


if __name__ == "__main__":
    main()
