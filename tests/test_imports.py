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
    "pipeline/training/rendezvous.py",
    "pipeline/training/response_logits.py",
    "pipeline/training/step_answers.py",
    "pipeline/training/trainer.py",
    "pipeline/training/trainer_async.py",
    "pipeline/training/updates.py",
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
    "pipeline/models/sources.py",
    "pipeline/warmup/prepare.py",
    "pipeline/warmup/worker.py",
    "pipeline/training/canary.py",
    "pipeline/cpu/patches.py",
    "pipeline/cpu/speed.py",
    "pipeline/record/mlflow_sender.py",
    "pipeline/record/tracking.py",
    "orchestration/registry/evaluated.py",
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
    loaded = modules_after(f"{imports}; [b.make_benchmark(name) for name in b.NAMES]")
    assert "inspect_ai" in loaded
    assert not loaded & HEAVY


# The rooms of each package, its folders and the modules beside them, from low to high: a room imports only
# rooms before it, inside functions and for types, too. So no circle can be closed.
ROOMS = {
    "reward": """
        problems user_yaml locales config types claims checks provenance telemetry samplers judging roles
        lexical auditor
        serving assignments offline __main__
    """,
    "pipeline": """
        container ports cpu redaction artifacts models settings record data worlds tiny rows
        estimate statistics evaluate lineage training launch train warmup demo
    """,
    "orchestration": """
        promotion registry terminal inspect doctor settings retrain schedule serving commands cli
    """,
}
# Some may know less than all rooms before them: what decides knows neither prompts nor engines.
ONLY = {
    "reward.samplers": {"types", "config", "telemetry"},
    "reward.judging": {"claims", "types", "config", "samplers"},  # the samplers' error, for its type alone
    "reward.roles": {
        *(
            "claims",
            "judging",
            "samplers",
            "types",
            "config",
            "problems",
            "provenance",
            "telemetry",
            "user_yaml",
        )
    },
    "reward.lexical": {"checks", "claims", "judging", "roles", "types", "config", "provenance"},
    "orchestration.terminal": set(),
    "orchestration.inspect": set(),
    "orchestration.doctor": {"terminal"},
    "orchestration.settings": {"terminal"},
    "orchestration.retrain": {"promotion", "registry", "settings", "terminal"},
    "orchestration.schedule": {"promotion", "registry", "retrain", "terminal"},
}


def dotted(file: Path) -> str:
    return ".".join(file.with_suffix("").parts).removesuffix(".__init__")


MODULES = {dotted(file): file for file in FILES}


def imported_modules(module: str) -> set[str]:
    """Our modules that a module imports, anywhere in it; `from a import b` may name `a.b`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse((ROOT / MODULES[module]).read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: a relative import; write the whole name"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else node.module or "" for name in names}
    return found & MODULES.keys() - {module}


def room_of(module: str) -> str:
    """The folder or module right below the package; "" for the package itself."""
    return ".".join(module.split(".")[1:2])


@pytest.mark.parametrize("package", PACKAGES)
def test_the_order_names_each_room_once(package: str) -> None:
    rooms = {room_of(module) for module in MODULES if module.startswith(f"{package}.")}
    assert sorted(ROOMS[package].split()) == sorted(rooms)


@pytest.mark.parametrize(
    "room", [f"{package}.{room}" for package in PACKAGES for room in ROOMS[package].split()]
)
def test_a_room_imports_only_rooms_before_it(room: str) -> None:
    package, name = room.split(".")
    rooms = ROOMS[package].split()
    before = set(rooms[: rooms.index(name)])
    assert ONLY.get(room, set()) <= before
    allowed = ONLY.get(room, before) | {name}
    for module in MODULES:
        if f"{module}.".startswith(f"{room}."):
            found = {one for one in imported_modules(module) if one.startswith(f"{package}.")}
            assert {one for one in found if room_of(one) not in allowed} == set(), module


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of nodes that reach each other."""
    reached = {start: set(graph[start]) for start in graph}
    for _ in graph:
        for seen in reached.values():
            seen |= {further for one in seen & graph.keys() for further in graph[one]}
    rings = {tuple(sorted(b for b in graph if b in reached[a] and a in reached[b])) for a in graph}
    return sorted(list(ring) for ring in rings if ring)


ONE_WAY = {
    "reward": ("checks", "lexical", "offline", "samplers", "serving"),
    "pipeline": ("data", "demo", "tiny", "worlds"),
}


@pytest.mark.parametrize("package", [f"{name}.{room}" for name, rooms in ONE_WAY.items() for room in rooms])
def test_modules_of_a_room_import_one_way(package: str) -> None:
    modules = {module for module in MODULES if f"{module}.".startswith(f"{package}.")}
    if package in ("reward.samplers", "reward.serving"):  # its `__init__` is the interface of the others
        modules.remove(package)
    assert circles({module: imported_modules(module) for module in modules}) == []
