"""The benchmark for a GPU, rehearsed on the CPU: its rows, and what it does after a failure."""

import csv
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import gpu
import gpu_counts
import gpu_models
import gpu_profile
import pandas as pd
import pytest
import torch

from fakes.data_fixtures import ROOT

SCRIPT = ROOT / "benchmarks" / "gpu.sh"
SHAPES = list(gpu_models.TINY)
ENGINES = [
    ("naive", "float32"),
    ("naive", "bfloat16"),
    ("lm-evaluation-harness", "bfloat16"),
    ("contamination", "bfloat16"),
]
NO_MEMORY = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")


def run_script(python: str, *arguments: str) -> subprocess.CompletedProcess:
    environment = os.environ | {"PYTHON": python}
    return subprocess.run(
        ["sh", str(SCRIPT), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
    )


def rows_of(output: str) -> list[dict[str, str]]:
    lines = [line for line in output.splitlines() if not line.startswith("#")]
    return list(csv.DictReader(lines))


def rehearse(capsys, *arguments: str) -> list[dict[str, str]]:
    gpu.main(["--rehearse", *arguments])
    return rows_of(capsys.readouterr().out)


def test_the_rehearsal_prints_rows_of_the_table_and_a_profile(capsys):
    gpu.main(["--rehearse"])
    printed = capsys.readouterr().out
    header = pd.read_csv(ROOT / "docs" / "measurements" / "throughput.csv", nrows=0)
    rows = rows_of(printed)
    assert set(rows[0]) == set(header.columns)
    made = [(row["model"], row["engine"], row["dtype"]) for row in rows]
    assert made == [(shape, *engine) for shape, engine in product(SHAPES, ENGINES)]
    for row in rows:
        if row["engine"] != "lm-evaluation-harness":
            assert float(row["tokens_per_second"]) > 0
            assert float(row["nats_from_naive"]) < 0.01
            assert row["note"] == "random weights"
    for shape in SHAPES:
        assert f"# profile, {shape}: batches of 4,096 tokens" in printed


@pytest.mark.parametrize("failing", ["network", "engine"])
def test_what_runs_out_of_memory_says_so_and_the_others_go_on(monkeypatch, capsys, failing):
    """In the first shape: the network in bfloat16, or our scorer of it."""
    make_network = gpu_models.make_network
    open_scorer = gpu_models.open_scorer
    first = gpu_models.TINY[SHAPES[0]]

    def make(shape, dtype, *others):
        if failing == "network" and shape is first and dtype == torch.bfloat16:
            raise NO_MEMORY
        return make_network(shape, dtype, *others)

    def open_one(network, *others):
        if failing == "engine" and network.config.model_type == "llama":
            raise NO_MEMORY
        return open_scorer(network, *others)

    monkeypatch.setattr(gpu_models, "make_network", make)
    monkeypatch.setattr(gpu_models, "open_scorer", open_one)
    rows = rehearse(capsys)
    refused = [row for row in rows if row["note"] == "out of memory"]
    engine = {"network": "all engines", "engine": "contamination"}[failing]
    assert [(row["model"], row["engine"]) for row in refused] == [(SHAPES[0], engine)]
    assert all(row["tokens_per_second"] == "" for row in refused)
    ours = [row for row in rows if row["engine"] == "contamination" and row["tokens_per_second"]]
    assert [row["model"] for row in ours] == SHAPES[1:]


def test_what_time_does_not_allow_is_not_measured(capsys):
    rows = rehearse(capsys, "--minutes", "0")
    notes = {row["note"] for row in rows if row["engine"] in ("naive", "contamination")}
    assert notes == {"not measured: no time left"}
    assert not any(row["tokens_per_second"] for row in rows)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU would be measured")
def test_without_a_gpu_the_rehearsal_is_named(capsys):
    with pytest.raises(SystemExit) as refused:
        gpu.main([])
    assert refused.value.code == 2
    assert "--rehearse" in capsys.readouterr().err


def test_the_script_runs_the_benchmark_without_a_network(tmp_path):
    """A Python stands in that lacks nothing, and prints what it is to run."""
    telling = tmp_path / "python"
    telling.write_text('#!/bin/sh\n[ "$1" = -c ] || echo "$HF_HUB_OFFLINE $PYTHONPATH $*"\n')
    telling.chmod(0o755)
    done = run_script(str(telling), "--rehearse", "--minutes", "2")
    assert done.returncode == 0, done.stderr
    offline, path, script, *arguments = done.stdout.split()
    assert offline == "1"
    assert Path(path.split(":")[0]).samefile(ROOT / "src")
    assert Path(script).samefile(ROOT / "benchmarks" / "gpu.py")
    assert arguments == ["--rehearse", "--minutes", "2"]


def test_the_script_names_the_packages_that_are_missing(tmp_path):
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    bare.chmod(0o755)
    done = run_script(str(bare), "--rehearse")
    assert done.returncode == 2
    assert "torch" in done.stderr
    assert "WHEELS" in done.stderr


@pytest.mark.parametrize(
    ("kernel", "kind"),
    [
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>", "attention"),
        ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80", "attention"),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT", "matrix products"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n", "matrix products"),
        ("Memcpy HtoD (Pinned -> Device)", "copies"),
        ("void at::native::elementwise_kernel<direct_copy_kernel_cuda>", "copies"),
        ("void at::native::reduce_kernel<512, 1, MeanOps>", gpu_profile.OTHERS),
    ],
)
def test_kernels_are_counted_by_their_names(kernel, kind):
    assert gpu_profile.kind_of(kernel) == kind


def test_an_operation_counts_the_bytes_that_it_reads_and_writes():
    states = torch.zeros(gpu_counts.TOKENS, 10, dtype=torch.bfloat16)
    weight = torch.zeros(30, 10, dtype=torch.bfloat16)
    with torch.inference_mode(), gpu_counts.Counter() as counter:
        doubled = states * 2
        torch.nn.functional.linear(doubled.view(1, -1, 10), weight)
    assert counter.count() == (2, 2 * (10 + 30), 2 * (10 + 10))


def test_the_output_layer_moves_32_bytes_for_an_entry_of_the_vocabulary():
    vocabulary = 10_000
    layer = torch.nn.Linear(4, vocabulary, bias=False, dtype=torch.bfloat16)
    count = gpu_counts.head_counted(layer)
    assert (count.of_products + count.of_others) / vocabulary == pytest.approx(32, rel=0.02)
