"""Every number that the papers print, with made-up tables of a run; differences by hand."""

import math
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from contamination.audit.registry import TESTS
from contamination.files import write_text
from contamination.scoring.models import load_models
from contamination.tables import read_csv
from contamination.testsets.registry import entries
from fakes.data_fixtures import ROOT
from reproduction.notebooks.assumptions import measure as passes
from reproduction.notebooks.assumptions import tables as assumptions
from reproduction.notebooks.assumptions.public import DOMAINS
from reproduction.notebooks.papers import measure as papers
from reproduction.notebooks.papers.measure import NOT_ASKED, plain
from reproduction.notebooks.papers.tables import summary_layout, table_layouts
from reproduction.notebooks.table import NOTEBOOKS
from reproduction.notebooks.wikimia import measure as benchmark
from reproduction.notebooks.wikimia.texts import ORIGINAL, PARAPHRASED

PUBLISHED = ROOT / "data" / "published"
OTHERS = ["size", "dup_count", "ppl_200_sd"]  # numbers that no run gives
HIGHER, GATED = "contam-1.4b-dupcount-higher", "failed: the model is gated"
AWAY = "not run here: no network"
RUN = {
    "open_models": f"""model,dataset,test,log10_p,status
{HIGHER},canaries/mnli,sharded_t,-12,ok
{HIGHER},canaries/piqa,sharded_t,-200,ok
{HIGHER},canaries/boolq,permutation,-1,ok
llama2-7b,boolq,sharded_t,-1,ok
llama2-7b,canaries/boolq,sharded_t,-9,ok
llama2-7b,boolq,successor,-9,ok
llama2-7b,gsm8k,sharded_t,,{GATED}""",
    "mmlu_fisher": """model,source,test,log10_p,status
llama2-7b,measured,sharded_t,-0.5,ok
llama2-7b,published,sharded_t,-9,ok""",
    "wikimia": f"""model,source,variant,length,score,auc,status
gpt-neox-20b,wikimia,original,32,loss,0.6,ok
gpt-neox-20b,wikimia,original,64,loss,0.7,ok
gpt-neox-20b,read here,original,64,loss,0.9,ok
,wikimia,paraphrased,32,,,{AWAY}""",
    "assumptions_within": f"""model,phase,domain,metric,auc_percent,status
pythia-6.9b,pre-training,ArXiv,min_prob_5,50,ok
pythia-6.9b,fine-tuning,ArXiv,min_prob_5,99,ok
pythia-70m,pre-training,,,,{GATED}""",
    "assumptions_cross": """model,phase,seen_domain,unseen_domain,metric,auc_percent,status
pythia-6.9b,pre-training,github,free_law,min_prob_25,80,ok
pythia-6.9b,pre-training,github,free_law,loss,9,ok""",
    "assumptions_perplexity": """model,phase,side,domain,perplexity,status
pythia-6.9b,pre-training,member,ArXiv,9,ok""",
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """The comparison of the run above."""
    results: Path = tmp_path_factory.mktemp("results")
    for name, table in RUN.items():
        write_text(results / "tables" / f"{name}.csv", table)
    return papers.compare(PUBLISHED, results)


def test_each_published_number_is_one_row_whatever_was_measured(tmp_path: Path) -> None:
    found = papers.compare(PUBLISHED, tmp_path)
    printed = Counter[float]()
    for name, *_ in papers.PUBLISHED:
        table = pd.read_csv(PUBLISHED / f"{name}.csv")
        if name == "shi2023_headline":  # other tables are of models that train
            table = table[(table["table"] == "Table 1") & (table["setting"] != "average")]
        if "metric" in table:
            table = table[table["metric"] != "Average AUC"]
        own = table.select_dtypes("number").drop(columns=OTHERS, errors="ignore")
        printed += Counter(own.stack().dropna().round(9))
    as_p = (10 ** found["published"]).where(found["unit"] == "log10 p", found["published"])
    assert Counter(as_p.round(9)) == printed
    assert not found.duplicated(["paper", "table", "model", "row", "column"]).any()
    assert found["ours"].isna().all()
    assert (found["status"] == NOT_ASKED).all()


def test_the_words_are_those_of_the_other_notebooks() -> None:
    """Notebooks do not import each other, so that they could drift apart."""
    cells = papers.published_cells(PUBLISHED)
    found = cells[papers.KEYS].map(plain).groupby("what").agg(set)

    def known(what: str, key: str, *words: str) -> bool:
        return set(found.loc[what, key]) <= set(map(plain, words))

    titles = [*(entry.title for entry in entries().values()), "MMLU (Fisher)"]
    for what in ("planted", "open"):
        assert known(what, "row", *titles)
        assert known(what, "column", *TESTS)
    assert known("auc", "row", *benchmark.SCORES)
    assert known("auc", "column", ORIGINAL, PARAPHRASED)
    assert known("within", "row", *passes.LABELS)
    assert known("across", "row", *DOMAINS)
    assert known("perplexity", "row", *assumptions.SIDES.values())
    assert all(known(what, "model", *load_models()) for what in ("planted", "mmlu", "auc"))
    for name, _, _, *columns in papers.OURS:  # else a column's name would pass for a word
        own = read_csv(ROOT / "results" / "reference", name)
        assert {*columns, "status"} <= {"title", "MMLU (Fisher)", *own}, name


@pytest.mark.parametrize(
    ("place", "ours", "difference", "status"),
    [
        ((HIGHER, "MNLI", "sharded_t"), -12, -12 - math.log10(1.96e-11), "ok"),
        ((HIGHER, "PIQA", "sharded_t"), -200, math.nan, "ok"),  # theirs is a floor
        ((HIGHER, "BoolQ", "permutation"), -1, -1 - math.log10(0.099), "ok"),
        (("LLaMA2-7B", "BoolQ", "sharded_t"), -1, -1 - math.log10(0.421), "ok"),
        (("LLaMA2-7B", "GSM8K", "sharded_t"), math.nan, math.nan, GATED),
        (("LLaMA2-7B", "PIQA", "sharded_t"), math.nan, math.nan, NOT_ASKED),
        (("LLaMA2-7B", "MMLU (Fisher)", "sharded_t"), -0.5, -0.5 - math.log10(0.014), "ok"),
        (("NeoX-20B", "PPL", "original"), 0.65, 0.65 - 0.70, "ok"),
        (("OPT-66B", "PPL", "paraphrase"), math.nan, math.nan, AWAY),
        (("OPT-66B", "PPL", "original"), math.nan, math.nan, NOT_ASKED),
        (("Pythia-6.9B", "Min 5% token", "ArXiv"), 50, 50 - 51.3, "ok"),
        (("pythia-70m", "PPL_50", "Github"), math.nan, math.nan, GATED),
        (("pythia-6.9b", "Github", "FreeLaw"), 80, 80 - 77.1, "ok"),
        (("Pythia-6.9B", "PPL_200, member", "ArXiv"), 9, 9 - 7.9, "ok"),
    ],
)
def test_single_numbers(rows: pd.DataFrame, place, ours, difference, status) -> None:
    (row,) = rows[(rows[["model", "row", "column"]] == list(place)).all(axis=1)].to_dict("records")
    found = [row["ours"], row["difference"]]
    assert found == pytest.approx([ours, difference], nan_ok=True)
    assert row["status"] == status


def test_the_layouts_count_and_show_each_table(rows: pd.DataFrame) -> None:
    first, second, *_ = summary_layout(rows).to_numpy().tolist()
    # |-12 + 10.71| and |-1 + 1.004|. On one side of 0.05 are MNLI, PIQA and BoolQ, with both.
    assert first[1:] == ["Table 1", "log10 p", "20", "3", "0.65", "3 of 3"]
    assert second[1:5] == ["Table 2", "log10 p", "38", "2"]
    shown = {name: table for name, _, table in table_layouts(rows)}
    assert shown["papers_oren_table_1"].to_numpy().tolist()[3] == [
        *("MNLI", "— (0.009)", "1.0\u00a0×\u00a010⁻¹² (2.0\u00a0×\u00a010⁻¹¹)")
    ]
    assert list(shown["papers_shi_table_1"])[1:3] == ["NeoX-20B, original", "NeoX-20B, paraphrase"]
    named = {Path(path).stem for path in NOTEBOOKS["13_beside_the_papers"].also}
    assert set(shown) == named


def test_a_column_that_a_table_has_lost_is_no_word_for_all_rows(tmp_path: Path) -> None:
    table = RUN["assumptions_cross"].replace("unseen_domain", "domain")
    write_text(tmp_path / "tables" / "assumptions_cross.csv", table)
    with pytest.raises(KeyError, match="unseen_domain"):
        papers.measured(tmp_path)
