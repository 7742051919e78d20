"""The notebook that shows the page, executed."""

import base64
import json
import re
from pathlib import Path

from contamination.files import write_json
from fakes.data_fixtures import EXAMPLES, ROOT, SETS, write_profile
from fakes.made_up_sets import make_store
from reproduction.report.notebooks import execute_notebook
from reproduction.run.experiment import Experiment


def test_the_notebook_shows_the_page(tmp_path: Path) -> None:
    profile = write_profile(tmp_path / "tiny.yaml")
    run = Experiment(profile, tmp_path / "build")
    template = {"template": "text/1"}
    write_json(run.corpus / "corpus.json", {"canaries": dict.fromkeys(SETS, template)})
    texts = [f"example {i}" for i in range(EXAMPLES)]
    path = run.corpus / "canaries" / "one.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    test_set = run.test_set("one")
    make_store(run.build / "stores", "clean", test_set, "successors", 2, tokens_per_example=32)
    notebook = tmp_path / "notebooks" / "explore_mmlu.ipynb"
    notebook.parent.mkdir()
    source = ROOT / "notebooks" / "explore_mmlu.ipynb"
    notebook.write_bytes(source.read_bytes())
    for name in ("data", "docs"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "notebooks" / "01_canary_eval.ipynb").touch()  # the profile names it
    target = execute_notebook(notebook, run, profile, tmp_path / "results")
    cells = json.loads(target.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    (frame,) = [o["data"]["text/html"] for o in outputs if "text/html" in o.get("data", {})]
    (packed,) = re.findall(r'src="data:text/html;charset=utf-8;base64,([^"]+)"', "".join(frame))
    assert b"Does the model prefer the published order?" in base64.b64decode(packed)
    assert source.read_bytes() == notebook.read_bytes()
