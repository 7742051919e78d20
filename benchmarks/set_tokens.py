"""Tokens of the registered sets that are at hand, for plans made before a set is fetched.

::

    python benchmarks/set_tokens.py --tokenizer openai-community/gpt2

Writes docs/measurements/set_tokens.csv: what is at hand (CONTAMINATION_DATA) is measured, and rows
of other sets stay as they are. The tokenizer is that of GPT-2, a hub id or a directory.
"""

import argparse
from pathlib import Path

import pandas as pd
from transformers import AutoTokenizer

from contamination.testsets.registry import registered
from contamination.testsets.sources import available, open_test_set
from contamination.testsets.tokens import tokenize

TABLE = Path("docs/measurements/set_tokens.csv")
COLUMNS = ["set", "form", "records", "tokens", "source"]


def main() -> None:
    """Measure what is at hand, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizer", default="openai-community/gpt2")
    tokenizer = AutoTokenizer.from_pretrained(parser.parse_args().tokenizer)
    rows = []
    for name in filter(available, registered()):
        for form, template in (("record", None), ("line", "line/1")):
            examples = open_test_set(name, template=template).examples
            tokens = sum(map(len, tokenize(tokenizer, examples)))
            rows.append((name, form, len(examples), tokens, "measured"))
    measured = pd.DataFrame(rows, columns=COLUMNS).set_index(["set", "form"])
    kept = pd.read_csv(TABLE).set_index(["set", "form"]) if TABLE.is_file() else measured[:0]
    kept = kept[~kept.index.isin(measured.index)]
    order = {name: place for place, name in enumerate(registered())}
    table = pd.concat([measured, kept]).reset_index()
    table = table.sort_values("set", key=lambda names: names.map(order), kind="stable")
    table.to_csv(TABLE, index=False, lineterminator="\n")
    print(table.to_string())


if __name__ == "__main__":
    main()
