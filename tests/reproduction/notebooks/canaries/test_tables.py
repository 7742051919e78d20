"""Table 1 laid out: our p-values as text."""

import numpy as np
import pandas as pd

from reproduction.notebooks.canaries.tables import canary_layout, redrawn_layout


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
    ).assign(redrawn_rate=[np.nan, np.nan, 0.0456] * 6)
    table = canary_layout(canaries, "contaminated", 0.05)
    heads = ["Set", "Examples", "Duplication count", "Permutation", "Sharded exact"]
    assert list(table) == [*heads, "Sharded exact, Holm", "Successor", "Redrawn"]
    assert table["Set"].tolist() == ["c", "a", "b"]
    cells = ["0.100", "0.004", "**0.020**", "1.0\u00a0×\u00a010⁻⁹", "4.6%"]
    assert table.iloc[1].tolist() == ["a", "12", "8", *cells]
    clean = canary_layout(canaries, "clean", 0.05)
    assert set(clean["Duplication count"]) == {"0"}
    assert set(clean["Sharded exact, Holm"]) == {"0.200"}


def test_redrawn_orders_laid_out() -> None:
    pooled = pd.DataFrame(
        [
            ("clean", "sharded_t", 3000, 0.0353, 0.029, 0.0426),
            ("clean", "successor", 3000, 0.0473, 0.04, 0.0556),
            ("contaminated", "successor", 3000, 0.0, 0.0, 0.0012),
        ],
        columns=["model", "test", *(f"redrawn_{x}" for x in ("orders", "rate", "low", "high"))],
    )
    table = redrawn_layout(pooled)
    assert list(table) == ["Test", "Redrawn orders", "Clean model", "Contaminated model"]
    assert table.to_numpy().tolist() == [
        ["Sharded t", "3,000", "3.5 (2.9 to 4.3)", "—"],
        ["Successor", "3,000", "4.7 (4.0 to 5.6)", "0.0 (0.0 to 0.1)"],
    ]
