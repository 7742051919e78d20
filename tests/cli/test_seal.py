"""`contamination seal`, as an author types it."""

import json

import pytest

from contamination.testsets import sealing

ITEMS = [
    {
        "question": f"What is {i}?",
        "choices": [f"one {i}", f"two {i}", f"three {i}", f"four {i}"],
        "answer": "ABCD"[i % 4],
        "wordings": [f"What is {i}?", f"Say what {i} is."],
    }
    for i in range(12)
]


@pytest.fixture(autouse=True)
def _directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "quiz.jsonl").write_text("".join(json.dumps(each) + "\n" for each in ITEMS))


SEAL = ("seal", "quiz.jsonl", "--out", "sealed", "--wordings-of", "question")
TEMPLATE = ("--template", r"{question}\n{choices:\n}\n{answer}\n")


def test_it_says_what_to_publish_and_what_to_keep_and_no_secret(call, tmp_path):
    status, out, err = call(*SEAL, *TEMPLATE, "--date", "2026-01-31")
    assert (status, err) == (0, "")
    seal = json.loads((tmp_path / "sealed/public/seal.json").read_bytes())
    key = json.loads((tmp_path / "sealed/private/key.json").read_bytes())
    assert out.splitlines() == [
        "sealed 12 records: their order, the options of 12 items, one of 2 wordings",
        f"commitment: {seal['commitment']}",
        "publish sealed/public/quiz.jsonl and sealed/public/seal.json, where a date can be proved",
        "keep sealed/private/key.json to yourself, and a second copy elsewhere: it is never shown, "
        "and nothing can be tested without it",
    ]
    assert seal["date"] == "2026-01-31"
    assert seal["template"] == "{question}\n{choices:\n}\n{answer}\n"
    secrets = [key["seed"], *(text for texts in key["wordings"].values() for text in texts)]
    assert not [secret for secret in secrets if secret in out]


def test_the_order_alone(call, tmp_path):
    status, out, _ = call(*SEAL, *TEMPLATE, "--axis", "order")
    assert status == 0
    assert out.startswith("sealed 12 records: their order, one of 2 wordings\n")
    published = (tmp_path / "sealed/public/quiz.jsonl").read_text().splitlines()
    assert {tuple(json.loads(line)["choices"]) for line in published} == {
        tuple(each["choices"]) for each in ITEMS
    }


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("seal", "none.jsonl", "--out", "new"), "none.jsonl: no such file; give the path of a"),
        (("seal", "quiz.jsonl"), "Missing option '--out'"),
        ((*SEAL, *TEMPLATE, "--out", "."), ".: a directory that cannot be replaced"),
        ((*SEAL, *TEMPLATE, "--out", "quiz.jsonl"), "quiz.jsonl: there is something already"),
        ((*SEAL, *TEMPLATE, "--date", "today"), "date is 'today': write YYYY-MM-DD, such as"),
        ((*SEAL, *TEMPLATE, "--axis", "options"), "Invalid value for '--axis'"),
        ((*SEAL, "--template", "{text"), "template '{text': "),
        (
            SEAL,
            "quiz.jsonl, line 1: a record with options; name a template that shows them, such as "
            rf"--template '{TEMPLATE[1]}'",
        ),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(refused, tmp_path, arguments, line):
    assert refused(*arguments).startswith(line)
    assert [path.name for path in tmp_path.iterdir()] == ["quiz.jsonl"]


def test_nothing_is_sealed_twice(call, refused, tmp_path):
    call(*SEAL, *TEMPLATE)
    before = (tmp_path / "sealed/private/key.json").read_bytes()
    assert refused(*SEAL, *TEMPLATE) == (
        "sealed: there is something already, and it stays; name a new directory"
    )
    assert (tmp_path / "sealed/private/key.json").read_bytes() == before


def test_an_interrupt_ends_it_without_a_trace(call, tmp_path, monkeypatch):
    def interrupted(*_) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sealing, "verify", interrupted)
    assert call(*SEAL, *TEMPLATE) == (130, "", "")
    assert [path.name for path in tmp_path.iterdir()] == ["quiz.jsonl"]
