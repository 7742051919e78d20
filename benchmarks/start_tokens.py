"""The effect of a start token before every example, as the public script of Oren et al. has it.

python benchmarks/start_tokens.py MODEL SET... [--records N] [--permutations M]

MODEL is a directory or a .gguf file, SET a registered name or a file of `text` records. Its
tokenizer is made to begin every text with its own start token, as those of Llama 2 and Mistral do.
Both ways score the same records in the same orderings; a row for each set and way goes to
docs/measurements/start_tokens.csv (or --out).
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from tokenizers.processors import TemplateProcessing

from contamination.scoring.contract import start_token
from contamination.scoring.loading import ModelSource
from contamination.scoring.local import TransformersScorer
from contamination.scoring.plan import MOST_SHARDS, StorePlan
from contamination.scoring.score import score
from contamination.statistics import sharded_exact_test, sharded_t_test
from contamination.testsets.sources import open_test_set

parser = argparse.ArgumentParser()
parser.add_argument("model")
parser.add_argument("sets", nargs="+")
parser.add_argument("--name", default="")
parser.add_argument("--template")
parser.add_argument("--records", type=int, default=100)
parser.add_argument("--permutations", type=int, default=5)
parser.add_argument("--out", type=Path, default=Path("docs/measurements/start_tokens.csv"))
asked = parser.parse_args()

scorer = TransformersScorer(ModelSource(asked.model))
tokenizer = scorer.tokenizer
start = tokenizer.convert_ids_to_tokens(start_token(tokenizer))
tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
    single=f"{start} $A", special_tokens=[(start, start_token(tokenizer))]
)
rows = []
for name in asked.sets:
    found = open_test_set(name, template=asked.template, max_records=asked.records)
    shards = min(MOST_SHARDS, len(found.examples) // 4)
    for each in (False, True):
        with tempfile.TemporaryDirectory() as folder:
            store = score(
                replace(found, started=each),  # of one revision, so in the same orderings
                scorer,
                Path(folder) / "store",
                StorePlan("orderings", shards),
                model="measured",
                permutations=asked.permutations,
                seed=1,
            )
            log_probs = store.log_probs(asked.permutations)
        gains = log_probs[:, 0] - log_probs[:, 1:].mean(axis=1)
        rows.append(
            {
                "model": asked.name or Path(asked.model).stem,
                "set": found.name,
                "start_token": "before every example" if each else "before a sequence",
                "records": len(found.examples),
                "shards": shards,
                "permutations": asked.permutations,
                "nats": round(float(log_probs[:, 0].sum()), 1),
                "mean_gain": round(float(gains.mean()), 4),
                "sd_gain": round(float(np.std(gains, ddof=1)), 4),
                "log10_p_sharded_t": round(sharded_t_test(log_probs).log10_p, 3),
                "log10_p_sharded_exact": round(sharded_exact_test(log_probs).log10_p, 3),
            }
        )
        print(rows[-1], flush=True)
known = [pd.read_csv(asked.out)] if asked.out.is_file() else []
pd.concat([*known, pd.DataFrame(rows)]).to_csv(asked.out, index=False)
