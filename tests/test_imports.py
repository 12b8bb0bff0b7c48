"""Imports run one way, and no command pays for an import that it does not use.

    reward <- pipeline <- orchestration

Only the files below import the training stack, and the light ones among them only inside functions.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("reward", "pipeline", "orchestration")
HEAVY = {"deepspeed", "mlflow", "openrlhf", "ray", "tokenizers", "torch", "transformers", "vllm"}
# These are loaded by OpenRLHF or by a command that trains; the stack is there anyway.
AT_ANY_LEVEL = (
    "pipeline/training/rollout.py",
    "pipeline/training/buffer.py",
    "pipeline/training/critic.py",
    "pipeline/training/engine_actor.py",
    "pipeline/training/experience.py",
    "pipeline/training/lora.py",
    "pipeline/training/micro_batches.py",
    "pipeline/training/policy.py",
    "pipeline/training/probe.py",
    "pipeline/training/rendezvous.py",
    "pipeline/training/response_logits.py",
    "pipeline/training/staleness.py",
    "pipeline/training/threads.py",
    "pipeline/training/trainer.py",
    "pipeline/training/trainer_async.py",
    "pipeline/record/metrics.py",
    "pipeline/training/advantages.py",
    "pipeline/training/agent.py",
    "pipeline/tiny/*.py",
    "pipeline/warmup/completion_logits.py",
)
# These are loaded to read settings or to show help.
INSIDE_FUNCTIONS = (
    "pipeline/demo/run.py",
    "pipeline/train.py",
    "pipeline/launch/ray_start.py",
    "pipeline/launch/ray_worker.py",
    "pipeline/launch/worker.py",
    "pipeline/models/convert.py",
    "pipeline/warmup/prepare.py",
    "pipeline/warmup/worker.py",
    "pipeline/training/canary.py",
    "pipeline/cpu/patches.py",
    "pipeline/record/mlflow_sender.py",
    "pipeline/record/tracking.py",
    "pipeline/evaluate/track.py",
    "orchestration/registry/logged.py",
    "orchestration/registry/mlflow_model.py",
    "orchestration/registry/server.py",
    "orchestration/registry/store.py",
    "orchestration/retrain/ledger.py",
    "orchestration/retrain/ray_jobs.py",
    "reward/samplers/live.py",
    "reward/samplers/local.py",
    "reward/samplers/token_ids.py",
)
FILES = sorted(file.relative_to(ROOT) for package in PACKAGES for file in (ROOT / package).rglob("*.py"))


def imports(tree: ast.AST, *, deep: bool) -> Iterator[str]:
    """Top-level names that are imported; not deep: only what runs when the module is imported."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
        elif not _is_passed_over(node, deep=deep):
            yield from imports(node, deep=deep)


def _is_passed_over(node: ast.AST, *, deep: bool) -> bool:
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    return not deep and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def is_one_of(file: Path, patterns: tuple[str, ...]) -> bool:
    return any(file.match(pattern) for pattern in patterns)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_run_one_way(file: Path) -> None:
    allowed = PACKAGES[: PACKAGES.index(file.parts[0]) + 1]
    found = set(imports(ast.parse((ROOT / file).read_text()), deep=True))
    assert found & set(PACKAGES) <= set(allowed)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_only_named_files_import_the_training_stack(file: Path) -> None:
    tree = ast.parse((ROOT / file).read_text())
    if is_one_of(file, AT_ANY_LEVEL):
        return
    assert not set(imports(tree, deep=False)) & HEAVY
    if not is_one_of(file, INSIDE_FUNCTIONS):
        assert not set(imports(tree, deep=True)) & HEAVY


def test_the_lists_above_name_files_that_exist() -> None:
    for pattern in (*AT_ANY_LEVEL, *INSIDE_FUNCTIONS):
        assert any(file.match(pattern) for file in FILES), pattern


def modules_after(code: str) -> set[str]:
    """Top-level modules that a new interpreter has after running the code."""
    show = "import sys; print('\\n' + ' '.join({name.partition('.')[0] for name in sys.modules}))"
    wrapped = f"try:\n    {code}\nexcept SystemExit:\n    pass\n{show}"
    done = subprocess.run(
        [sys.executable, "-c", wrapped], capture_output=True, text=True, cwd=ROOT, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        *(
            [*name.split(), "--help"]
            for name in (
                "audit",
                "serve",
                "prepare",
                "train",
                "warmup",
                "demo",
                "inspect",
                "evaluate",
                "best",
                "artifacts",
                "retrain",
                "schedule",
                "status",
                "init",
                "doctor",
                "world",
                "recipe list",
                "recipe show",
                "base-model fetch",
                *(
                    f"model {name}"
                    for name in (
                        "register",
                        "promote",
                        "approve",
                        "reject",
                        "rollback",
                        "list",
                        "serve",
                        "lineage",
                        "reproduce",
                    )
                ),
            )
        ),
        ["audit", "--no-such-option"],
        ["no-such-command"],
    ],
    ids=" ".join,
)
def test_help_and_wrong_options_load_nothing_heavy(arguments: list[str]) -> None:
    loaded = modules_after(f"from orchestration.cli import main; main({arguments!r})")
    assert "typer" in loaded
    assert not loaded & (HEAVY | {"fastapi", "httpx", "jinja2", "openai", "uvicorn", "yaml"})


def test_a_lexical_audit_loads_no_model_and_no_server(tmp_path: Path) -> None:
    data, out = Path(__file__).parent / "data" / "ragtruth", tmp_path / "out.jsonl"
    arguments = ["audit", str(data), "--out", str(out), "--format", "ragtruth", "--limit", "2"]
    loaded = modules_after(f"from orchestration.cli import main; main({arguments!r})")
    assert len(out.read_text().splitlines()) == 2
    assert not loaded & (HEAVY | {"fastapi", "openai", "uvicorn"})


def test_the_benchmarks_as_tasks_need_the_extra_evaluate_alone() -> None:
    """`inspect eval march/...` imports all of this, with none of the training stack installed."""
    imports = "import pipeline.evaluate.tasks, pipeline.evaluate.benchmarks as b"
    loaded = modules_after(f"{imports}; [b.make_benchmark(name) for name in b.ALL_NAMES]")
    assert "inspect_ai" in loaded
    assert not loaded & HEAVY


# Inside the audit: kinds of claims know only texts, and what decides knows neither prompts nor engines.
ROOMS = {
    "claims": {"types", "config"},
    "judging": {"claims", "types", "config", "samplers"},  # the samplers' error, for its type alone
    "checks": {"claims", "types", "config"},
    "lexical": {"checks", "claims", "judging", "roles", "types", "config", "provenance"},
    "samplers": {"types", "config", "telemetry"},
    "roles": {"claims", "judging", "samplers", "types", "config", "provenance", "telemetry"},
}


@pytest.mark.parametrize("room", ROOMS)
def test_rooms_of_the_audit_import_one_way(room: str) -> None:
    for file in (ROOT / "reward" / room).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("reward."):
                assert (node.module or "").split(".")[1] in ROOMS[room] | {room}, f"{file}: {node.module}"


def test_no_module_of_these_folders_is_in_a_circle_of_imports() -> None:
    files = {dotted(file): file for file in (ROOT / "reward").rglob("*.py")}
    graph = {name: imported_modules(file, set(files)) - {name} for name, file in files.items()}
    of_these = [name for name in graph if name.split(".")[1:2] in (["offline"], ["lexical"], ["checks"])]
    assert [name for name in of_these if name in reachable(name, graph)] == []


def dotted(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported_modules(file: Path, modules: set[str]) -> set[str]:
    """Modules that a file imports, inside functions too; `from a import b` may name `a.b`."""
    nodes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ImportFrom)]
    pairs = {(node.module or "", alias.name) for node in nodes for alias in node.names}
    return {f"{a}.{b}" if f"{a}.{b}" in modules else a for a, b in pairs} & modules


def reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    todo = {start}
    while todo:
        todo = set().union(*(graph[name] for name in todo)) - seen
        seen |= todo
    return seen


# Around the audit and the training: only the command line imports commands, and the gates know nothing else.
AROUND = {
    "promotion": set(),
    "terminal": set(),
    "inspect": set(),
    "doctor": {"terminal"},
    "registry": {"promotion"},
    "settings": {"terminal"},
    "retrain": {"promotion", "registry", "settings", "terminal"},
    "schedule": {"promotion", "registry", "retrain", "terminal"},
}


@pytest.mark.parametrize("room", AROUND)
def test_rooms_around_it_import_one_way(room: str) -> None:
    for file in (ROOT / "orchestration" / room).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("orchestration."):
                assert (node.module or "").split(".")[1] in AROUND[room] | {room}, f"{file}: {node.module}"


def inner_imports(file: Path) -> set[str]:
    """Modules of `reward` that a file imports, anywhere in it: inside functions and for types, too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "reward":
            module = ROOT / (node.module or "").replace(".", "/")
            names = [alias.name for alias in node.names]
            below = {f"{node.module}.{name}" for name in names if _is_module(module / name)}
            found |= below | ({node.module or ""} if len(below) < len(names) else set())
    return found


def _is_module(path: Path) -> bool:
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of nodes that reach each other."""
    reached = {start: set(graph[start]) for start in graph}
    for _ in graph:
        for seen in reached.values():
            seen |= {further for one in seen & graph.keys() for further in graph[one]}
    rings = {tuple(sorted(b for b in graph if b in reached[a] and a in reached[b])) for a in graph}
    return sorted(list(ring) for ring in rings if ring)


def test_imports_inside_reward_around_the_audit_have_no_circle() -> None:
    """Rooms are the nodes: how the audit is served, sampled and traced."""
    graph: dict[str, set[str]] = {}
    for file in (ROOT / "reward").rglob("*.py"):
        room = file.relative_to(ROOT / "reward").parts[0].removesuffix(".py")
        rooms = {module.split(".")[1] for module in inner_imports(file) if "." in module}
        graph.setdefault(room, set()).update(rooms - {room})
    around = {"provenance", "samplers", "serving", "telemetry", "tracing"}
    assert [ring for ring in circles(graph) if around & set(ring)] == []


@pytest.mark.parametrize("room", ["samplers", "serving"])
def test_files_of_a_room_import_one_way(room: str) -> None:
    """Files are the nodes; the package's own `__init__` is the interface of the others."""
    files = [file for file in (ROOT / "reward" / room).glob("*.py") if file.stem != "__init__"]
    assert circles({f"reward.{room}.{file.stem}": inner_imports(file) for file in files}) == []
