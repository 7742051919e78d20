"""The passes of notebook 02: some canary sets in other numbers of shards."""

from collections.abc import Sequence

import pandas as pd

from reproduction.run.experiment import Experiment


def measure(
    experiment: Experiment, *, datasets: Sequence[str], shards: Sequence[int]
) -> dict[str, pd.DataFrame]:
    """Score every set in every number of shards under the contaminated model, into its stores.

    There is no table: the notebook reads the stores.
    """
    permutations = experiment.profile.scoring.permutations
    for count in shards:
        for dataset in datasets:
            experiment.score("contaminated", dataset, shards=count, permutations=permutations)
    return {}
