"""What becomes of options that several commands share."""

import json

from contamination.cli.options import DataOptions


def test_a_template_has_the_line_breaks_and_tabs_that_were_typed_as_two_letters(tmp_path):
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps({"a": r"\n", "b": 2}) + "\n")
    for template in (r"{a}\t{b}\n", "{a}\t{b}\n"):
        assert DataOptions(template=template).load(str(path)).examples == ("\\n\t2\n",)
