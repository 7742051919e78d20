"""Records from the hub, a URL and a directory, by HTTP and from caches in the hub's own layout."""

import io
import json
import zipfile
from pathlib import Path

import huggingface_hub
import pandas as pd
import pytest

from contamination.errors import InputError
from contamination.testsets import fetching, unpacked
from contamination.testsets.fetching import download
from contamination.testsets.registry import Hub, Url
from fakes import made_up_registry
from fakes.hub_server import LocalHandler, LocalServer, Repository
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
    def test_a_split_in_several_files_and_its_commit(self, repository, server):
        records, commit, _ = download(Hub("org/name", "one"), "test", Path("unused"))
        assert [record for _, record in records] == QUESTIONS
        assert records[4][0] == "test-00001-of-00002.parquet, record 1"
        assert commit == repository.refs["main"]
        # Not the files of other splits and configurations, and no script.
        names = (f"test-0000{i}-of-00002.parquet" for i in "01")
        assert server.downloaded() == {"README.md", *names}

    def test_a_configuration_with_a_directory_of_a_branch_and_of_a_commit(self, repository):
        before = repository.refs["main"]
        later = repository.push(FILES | {"two/t.jsonl": jsonl(HEAD)}, "later")
        for revision, expected in ((None, TAIL), ("later", HEAD), (later, HEAD), (before, TAIL)):
            assert fetched(Hub("org/name", "two", revision)) == expected

    def test_the_branch_moves_between_card_and_data(self, repository, monkeypatch):
        """All files are of the commit that the card came from."""
        patterns = fetching.card_patterns

        def slow(*arguments):
            repository.push(FILES | {"two/t.jsonl": jsonl(HEAD)})
            return patterns(*arguments)

        monkeypatch.setattr(fetching, "card_patterns", slow)
        before = repository.refs["main"]
        records, commit, _ = download(Hub("org/name", "two"), "test", Path("unused"))
        assert [record for _, record in records] == TAIL
        assert commit == before

    def test_the_card_of_several_configurations_is_read_once(self, repository, monkeypatch):
        """MMLU has 57, and its card takes longer to read than their records."""
        whole = huggingface_hub.DatasetCard
        read = []

        def counted(text: str):
            read.append(text)
            return whole(text)

        monkeypatch.setattr(huggingface_hub, "DatasetCard", counted)
        repository.push(FILES | {"README.md": card(ONE, TWO) + b"Another text.\n"})
        assert fetched(Hub("org/name", "one")) == QUESTIONS
        assert fetched(Hub("org/name", "two")) == TAIL
        assert len(read) == 1

    def test_how_repositories_say_where_a_split_is(self, repository):
        parquet_of = {"a/test/0000.parquet": parquet(HEAD), "b/test/0000.parquet": parquet(TAIL)}
        by_name = {"data/test-00000-of-00001.parquet": parquet(HEAD), "data/train.txt": b"x"}
        by_file = {"test.csv": b"question\nq\n", "dev.csv": b"question\nr\n"}
        script = {"README.md": b"---\nlicense: mit\n---\n", "name.py": b"raise"}
        arrow = {"config_name": "one", "data_files": [{"split": "test", "path": "data/*"}]}
        arrows = {"README.md": card(arrow), "data/test.arrow": b""}
        whole = {"config_name": "all", "data_files": "two/*.jsonl"}
        several = "several configurations; write NAME:CONFIG with one of "
        converted = "refs/convert/parquet"
        repository.push(parquet_of, converted)
        for files, where, split, expected in (  # records, or what a refusal says
            (FILES, (), "test", f"{several}one, two"),
            (FILES, ("three",), "test", "no configuration 'three'; write NAME:CONFIG with one of"),
            (FILES, ("one",), "dev", "no split 'dev'; give split=test, train"),
            (FILES | {"README.md": card(ONE, TWO | {"default": True})}, (), "test", TAIL),
            (FILES | {"README.md": card(whole)}, (), "train", TAIL),
            (FILES | {"README.md": card(whole)}, (), "test", "no split 'test'; give split=train"),
            (by_name, (), "test", HEAD),
            (by_file, (), "test", [{"question": "q"}]),
            (by_file, (), "validation", [{"question": "r"}]),
            (script, (), "test", f"give revision={converted}"),
            (script, ("b", converted), "test", TAIL),
            (script, (None, converted), "test", f"{several}a, b"),
            (script, ("c", converted), "test", "no configuration 'c'"),
            ({"data/test.arrow": b"x"}, (), "test", "no data files of split 'test'"),
            (arrows, (), "test", "no data files of split 'test' (.jsonl"),
        ):
            repository.push(files)
            source = Hub("org/name", *where)
            if isinstance(expected, str):
                assert expected in refusal(source, split)
            else:
                assert fetched(source, split) == expected

    def test_what_cannot_be_had(self, repository, server):
        server.repositories["org/gated"] = gated = Repository()
        gated.push(FILES)
        gated.gated = True
        for source, named in (
            (Hub("org/nothing"), "log in with `hf auth login`"),
            (Hub("org/name", None, "v9"), "https://huggingface.co/datasets/org/name"),
            (Hub("org/gated", "one"), "ask for access on https://"),
        ):
            assert named in refusal(source)
        server.shutdown()
        server.server_close()
        assert "where there is a network" in refusal(Hub("org/another"))


class TestUrl:
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

    def test_a_member_is_unpacked_up_to_a_bound(self, archive, tmp_path, monkeypatch):
        monkeypatch.setattr(unpacked, "MOST_OF_A_FILE", len(jsonl(QUESTIONS)))
        assert fetched(archive, directory=tmp_path) == QUESTIONS
        monkeypatch.setattr(unpacked, "MOST_OF_A_FILE", len(jsonl(QUESTIONS)) - 1)
        assert "questions.jsonl" in refusal(archive, directory=tmp_path)

    def test_no_more_than_the_member_is_unpacked(self, server, tmp_path):
        """The rest may be large, damaged, or named by a path that leads out."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("questions.jsonl", jsonl(QUESTIONS))
            packed.writestr("../outside.jsonl", jsonl(HEAD))
            packed.writestr("bomb.jsonl", bytes(20_000_000))
        server.files["/sets.zip"] = buffer.getvalue()
        kept = tmp_path / "kept"
        source = Url(f"{server.url}/sets.zip", "questions.jsonl")
        assert fetched(source, directory=kept) == QUESTIONS
        assert [file.suffix for file in kept.iterdir()] == [".zip"]
        source = Url(source.url, "outside.jsonl")
        assert fetched(source, directory=kept) == HEAD
        assert sorted(tmp_path.iterdir()) == [tmp_path / "kept"]

    @pytest.mark.parametrize("announced", ["", "true", "1" + "0" * 15])
    def test_a_file_is_downloaded_up_to_a_bound(self, tmp_path, monkeypatch, announced):
        """Whether the server says nothing of its size, the truth, or more than it sends."""
        body = jsonl(QUESTIONS)

        class Answer(LocalHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                if announced:
                    self.send_header("Content-Length", announced.replace("true", str(len(body))))
                self.end_headers()
                self.wfile.write(body)

        monkeypatch.setattr(fetching, "PIECE", 10)
        with LocalServer(Answer) as server:
            source = Url(f"{server.url}/test.jsonl")
            monkeypatch.setattr(fetching, "MOST_BYTES", len(body) - 1)
            assert f"{len(body) - 1:,} bytes" in refusal(source, directory=tmp_path)
            assert not list(tmp_path.iterdir())
            monkeypatch.setattr(fetching, "MOST_BYTES", len(body))
            if announced in ("", "true"):
                assert fetched(source, directory=tmp_path) == QUESTIONS
            else:
                assert f"{len(body):,} bytes" in refusal(source, directory=tmp_path)
            server.shutdown()

    def test_an_answer_that_breaks_off_leaves_nothing(self, tmp_path):
        class Answer(LocalHandler):
            def do_GET(self) -> None:
                self.send(200, jsonl(QUESTIONS), cut=True)

        with LocalServer(Answer) as server:
            source = Url(f"{server.url}/test.jsonl")
            assert "check the network" in refusal(source, directory=tmp_path)
            server.shutdown()
        assert not list(tmp_path.iterdir())

    def test_what_cannot_be_had(self, server, archive, tmp_path):
        server.files["/other.zip"] = b"<html>"
        for source, named in (
            (Url(archive.url, "answers.jsonl"), "0 members are called answers.jsonl"),
            (Url(f"{server.url}/other.zip", "a.jsonl"), "other.zip"),
            (Url(f"{server.url}/missing.jsonl"), "check the network"),
            (Url("http://127.0.0.1:9/test.jsonl"), "check the network"),
        ):
            assert named in refusal(source, directory=tmp_path)
        server.files["/test.jsonl"] = jsonl(HEAD) + b"<html>"
        with pytest.raises(InputError, match=r"test\.jsonl, line 5: not JSON"):
            fetched(Url(f"{server.url}/test.jsonl"), directory=tmp_path / "kept")
        assert not list((tmp_path / "kept").iterdir())


@pytest.mark.parametrize("reached", [False, True])
def test_a_hub_out_of_reach_is_asked_once(server, monkeypatch, reached: bool):
    """Its client would try six times, for half a minute."""
    where = server.url if reached else "http://127.0.0.1:9"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", where)
    with fetching.asked_once():
        assert huggingface_hub.constants.is_offline_mode() is not reached
    assert not huggingface_hub.constants.is_offline_mode()
