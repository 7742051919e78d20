"""The numbers that the papers print, and the models in the tables of Oren (section 4.3)."""

from pathlib import Path

import pandas as pd

from contamination.errors import InputError

# Column of Tables 2 and 4 -> the model's name in the paper.
CONTROLS = {"biomedlm": "BioMedLM", "gpt2_xl": "GPT-2 XL"}
AUDITED = {"llama2_7b": "LLaMA2-7B", "mistral_7b": "Mistral-7B", "pythia_1_4b": "Pythia-1.4B"}

# Column of Table 1 -> the test in it, of the checkpoint of higher counts.
PRINTED = {"permutation_p": "permutation", "sharded_p": "sharded_t"}


def load_published(directory: Path | str, name: str) -> pd.DataFrame:
    """Read one table of `data/published/`."""
    path = Path(directory) / f"{name}.csv"
    if not path.is_file():
        raise InputError(f"{path}: no such published table; restore data/published from git")
    return pd.read_csv(path)
