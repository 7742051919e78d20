"""A classroom trained for a few seconds: one set read so often that no test can miss it."""

import pytest

SETTINGS = {"dup_counts": [1, 150], "examples": 12, "documents": 60, "seed": 3}


@pytest.fixture(scope="session")
def classroom(tmp_path_factory):
    from reproduction.notebooks.seminar.classroom import open_classroom

    return open_classroom(tmp_path_factory.mktemp("seminar"), **SETTINGS)
