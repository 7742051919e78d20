"""What the hub, a URL and a directory give, over HTTP and from caches in the hub's own layout."""

import io
import json
import zipfile
from pathlib import Path

import datasets
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.testsets.fetching import download, read_directory
from contamination.testsets.registry import Hub, Url
from fakes import made_up_registry
from fakes.hub_server import Repository
from fakes.made_up_registry import QUESTIONS, jsonl

HEAD, TAIL = QUESTIONS[:4], QUESTIONS[4:]


def parquet(records: list[dict]) -> bytes:
    return pd.DataFrame(records).to_parquet()


def card(*configs: dict) -> bytes:
    return f"---\nconfigs: {json.dumps(configs)}\n---\nA card.\n".encode()


ONE = {
    "config_name": "one",
    "data_files": [
        {"split": "test", "path": "one/test-*"},
        {"split": "train", "path": ["one/train-*"]},
    ],
}
TWO = {"config_name": "two", "data_dir": "two", "data_files": [{"split": "test", "path": "t*"}]}
FILES = {
    "README.md": card(ONE, TWO),
    "name.py": b"raise RuntimeError('run')",
    "one/test-00000-of-00002.parquet": parquet(HEAD),
    "one/test-00001-of-00002.parquet": parquet(TAIL),
    "one/train-00000-of-00001.parquet": b"no parquet",
    "two/t.jsonl": jsonl(TAIL),
}


@pytest.fixture
def repository(server) -> Repository:
    server.repositories["org/name"] = made = Repository()
    made.push(FILES)
    return made


def fetched(source: Hub | Url, split: str = "test", directory: Path = Path("unused")) -> list[dict]:
    return [record for _, record in download(source, split, directory)[0]]


def refusal(source: Hub | Url, split: str = "test", directory: Path = Path("unused")) -> str:
    message = made_up_registry.refusal(download, source, split, directory)
    assert message.startswith(str(source) if isinstance(source, Hub) else source.url)
    return message


class TestHub:
    """A repository over HTTP."""

    def test_a_split_in_several_files_and_its_commit(self, repository, server):
        records, commit, _ = download(Hub("org/name", "one"), "test", Path("unused"))
        assert [record for _, record in records] == QUESTIONS
        assert records[4][0] == "test-00001-of-00002.parquet, record 1"
        assert commit == repository.refs["main"]
        # Not the files of other splits and configurations, and no script.
        assert server.downloaded() == {
            "README.md",
            *(f"test-0000{i}-of-00002.parquet" for i in "01"),
        }

    def test_a_configuration_with_a_directory_of_a_branch_and_of_a_commit(self, repository):
        before = repository.refs["main"]
        later = repository.push(FILES | {"two/t.jsonl": jsonl(HEAD)}, "later")
        assert fetched(Hub("org/name", "two")) == TAIL
        assert fetched(Hub("org/name", "two", "later")) == HEAD
        assert fetched(Hub("org/name", "two", later)) == HEAD
        assert fetched(Hub("org/name", "two", before)) == TAIL

    def test_the_branch_moves_between_card_and_data(self, repository, monkeypatch):
        """All files are of the commit that the card came from."""
        from contamination.testsets import fetching

        patterns = fetching._card_patterns

        def slow(*arguments):
            repository.push(FILES | {"two/t.jsonl": jsonl(HEAD)})
            return patterns(*arguments)

        monkeypatch.setattr(fetching, "_card_patterns", slow)
        before = repository.refs["main"]
        records, commit, _ = download(Hub("org/name", "two"), "test", Path("unused"))
        assert ([record for _, record in records], commit) == (TAIL, before)

    def test_without_a_card_the_names_of_files_tell_the_splits(self, repository):
        repository.push({"data/test-00000-of-00001.parquet": parquet(HEAD), "data/train.txt": b"x"})
        assert fetched(Hub("org/name")) == HEAD
        repository.push({"test.csv": b"question\nq\n", "dev.csv": b"question\nr\n"})
        assert fetched(Hub("org/name")) == [{"question": "q"}]
        assert fetched(Hub("org/name"), "validation") == [{"question": "r"}]

    def test_what_the_hub_has_converted(self, repository):
        """The main branch has a script; the converted branch a folder for each configuration."""
        repository.push({"README.md": b"---\nlicense: mit\n---\n", "name.py": b"raise"})
        assert "give --data-revision refs/convert/parquet" in refusal(Hub("org/name"))
        files = {"a/test/0000.parquet": parquet(HEAD), "b/test/0000.parquet": parquet(TAIL)}
        repository.push(files, "refs/convert/parquet")
        assert fetched(Hub("org/name", "b", "refs/convert/parquet")) == TAIL
        message = refusal(Hub("org/name", None, "refs/convert/parquet"))
        assert "several configurations; write NAME:CONFIG with one of a, b" in message
        message = refusal(Hub("org/name", "c", "refs/convert/parquet"))
        assert "no configuration 'c'" in message

    def test_the_default_configuration(self, repository):
        repository.push(FILES | {"README.md": card(ONE, TWO | {"default": True})})
        assert fetched(Hub("org/name")) == TAIL
        repository.push(FILES | {"README.md": card(ONE, TWO | {"config_name": "default"})})
        assert fetched(Hub("org/name")) == TAIL

    def test_a_set_without_splits_is_its_training_split(self, repository):
        whole = {"config_name": "all", "data_files": "two/*.jsonl"}
        repository.push(FILES | {"README.md": card(whole)})
        assert fetched(Hub("org/name"), "train") == TAIL
        assert "no split 'test'; give --split train" in refusal(Hub("org/name"))

    def test_what_cannot_be_had(self, repository, server):
        several = "write NAME:CONFIG with one of one, two"
        for source, split, named in (
            (Hub("org/name"), "test", f"several configurations; {several}"),
            (Hub("org/name", "three"), "test", f"no configuration 'three'; {several}"),
            (Hub("org/name", "one"), "dev", "no split 'dev'; give --split test, train"),
            (Hub("org/nothing"), "test", "log in with `hf auth login`"),
            (Hub("org/name", None, "v9"), "test", "https://huggingface.co/datasets/org/name"),
        ):
            assert named in refusal(source, split)
        server.repositories["org/gated"] = gated = Repository()
        gated.push(FILES)
        gated.gated = True
        assert "ask for access on https://" in refusal(Hub("org/gated", "one"))
        repository.push({"data/test.arrow": b"x"})
        assert "no data files of split 'test'" in refusal(Hub("org/name"))
        arrow = {"config_name": "one", "data_files": [{"split": "test", "path": "data/*"}]}
        repository.push({"README.md": card(arrow), "data/test.arrow": b"x"})
        assert "test.arrow: unknown kind of file" in refusal(Hub("org/name"))
        server.shutdown()
        server.server_close()
        assert "where there is a network" in refusal(Hub("org/another"))


class TestUrl:
    """Files behind plain addresses."""

    @pytest.fixture
    def archive(self, server) -> Url:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("sets/questions.jsonl", jsonl(QUESTIONS))
            archive.writestr("__MACOSX/sets/questions.jsonl", b"\0")
            archive.writestr("sets/more_questions.jsonl", jsonl(HEAD))
        server.files["/sets.zip"] = buffer.getvalue()
        return Url(f"{server.url}/sets.zip", "questions.jsonl")

    def test_a_file_is_fetched_every_time(self, server, tmp_path):
        source = Url(f"{server.url}/a/test.jsonl")
        for records in (HEAD, TAIL):
            server.files["/a/test.jsonl"] = jsonl(records)
            assert fetched(source, directory=tmp_path / "kept") == records
        assert not list((tmp_path / "kept").iterdir())

    def test_a_member_and_the_archive_is_fetched_once(self, server, archive, tmp_path):
        assert fetched(archive, directory=tmp_path) == QUESTIONS
        other = Url(archive.url, "more_questions.jsonl")
        assert fetched(other, directory=tmp_path) == HEAD
        assert server.seen == ["GET /sets.zip"]
        download(other, "test", tmp_path, again=True)
        assert server.seen == ["GET /sets.zip"] * 2

    def test_what_cannot_be_had(self, server, archive, tmp_path):
        server.files["/other.zip"] = b"<html>"
        for source, named in (
            (Url(archive.url, "answers.jsonl"), "0 members are called answers.jsonl"),
            (Url(f"{server.url}/other.zip", "a.jsonl"), "BadZipFile"),
            (Url(f"{server.url}/missing.jsonl"), "check the network"),
            (Url("http://127.0.0.1:9/test.jsonl"), "check the network"),
        ):
            assert named in refusal(source, directory=tmp_path)
        server.files["/test.jsonl"] = jsonl(HEAD) + b"<html>"
        with pytest.raises(InputError, match=r"test\.jsonl, line 5: not JSON"):
            fetched(Url(f"{server.url}/test.jsonl"), directory=tmp_path / "kept")
        assert not list((tmp_path / "kept").iterdir())


class TestDirectory:
    """Directories that `datasets` saved, and clones of repositories."""

    def test_one_split_or_several_and_a_damaged_one(self, tmp_path):
        datasets.disable_progress_bars()
        test, dev = (datasets.Dataset.from_list(records) for records in (TAIL, HEAD))
        saved, several = tmp_path / "saved", tmp_path / "several"
        test.save_to_disk(saved)
        datasets.DatasetDict({"test": test, "dev": dev}).save_to_disk(several)
        for path in (saved, several):
            assert [record for _, record in read_directory(path, None, "test")] == TAIL
        with pytest.raises(InputError, match="no split 'train'; give --split test, dev"):
            read_directory(several, None, "train")
        next(saved.glob("*.arrow")).unlink()
        with pytest.raises(InputError, match=r"saved: cannot be had \(.*; save it again"):
            read_directory(saved, None, "test")

    def test_a_clone(self, tmp_path):
        for name, data in FILES.items():
            path = tmp_path / "clone" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        records = read_directory(tmp_path / "clone", "one", "test")
        assert [record for _, record in records] == QUESTIONS
        with pytest.raises(InputError, match="several configurations; write NAME:CONFIG"):
            read_directory(tmp_path / "clone", None, "test")
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError, match="no data files of split 'test'"):
            read_directory(tmp_path / "empty", None, "test")
