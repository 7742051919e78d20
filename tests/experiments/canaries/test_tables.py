"""Table 1 laid out: our p-values as text."""

import numpy as np
import pandas as pd

from contamination.experiments.canaries.tables import canary_layout


def test_one_model_laid_out() -> None:
    tests = {"permutation": 0.1, "sharded_exact": 0.004, "successor": 1e-9}
    canaries = pd.DataFrame(
        [
            (model, dataset, 12, count, test, p, np.log10(p), min(1, p * factor))
            for model, factor in (("contaminated", 5), ("clean", 50))
            for dataset, count in (("b", 8), ("c", 1), ("a", 8))
            for test, p in tests.items()
        ],
        columns=["model", "dataset", "examples", "dup_count", "test", "p", "log10_p", "holm_p"],
    )
    table = canary_layout(canaries, "contaminated", 0.05)
    heads = ["Set", "Examples", "Duplication count", "Permutation", "Sharded exact"]
    assert list(table) == [*heads, "Sharded exact, Holm", "Successor"]
    assert table["Set"].tolist() == ["c", "a", "b"]
    cells = ["0.100", "0.004", "**0.020**", "1.0\u00a0×\u00a010⁻⁹"]
    assert table.iloc[1].tolist() == ["a", "12", "8", *cells]
    clean = canary_layout(canaries, "clean", 0.05)
    assert set(clean["Duplication count"]) == {"0"}
    assert set(clean["Sharded exact, Holm"]) == {"0.200"}
