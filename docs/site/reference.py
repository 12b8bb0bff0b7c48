"""Pages that MkDocs makes at build time: the README as the first page, and the reference from the code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import typer.main
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from orchestration.cli import app
from orchestration.promotion.policy import GatePolicy
from orchestration.retrain.job import Job
from pipeline.artifacts.settings import StoreSettings
from pipeline.settings.recipe import Recipe
from reward.serving.config import NoSampler, ServerConfig
from reward.serving.server import create_app

ROOT = Path(__file__).parents[2]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = {
        "index.md": re.sub(r"\]\(docs/", "](", readme),
        "reference/cli.md": "# Command line\n\n" + "\n".join(commands(typer.main.get_command(app), "march")),
        "reference/recipe.md": "# Keys of a recipe\n\n" + table(Recipe),
        "reference/settings.md": "# Settings\n\n"
        + "\n".join(
            f"## {title}\n\n{table(model)}"
            for title, model in (
                ("Reward server", ServerConfig),
                ("Job of a retraining", Job),
                ("Policy of the gates", GatePolicy),
                ("Artifact store", StoreSettings),
            )
        ),
        "reference/http.md": "# HTTP API\n\n" + http_api(),
        "reference/python.md": "# Python API\n\n::: reward\n",
    }
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links to files that are not pages become the files' names."""
    outside = r"(?<!!)\[([^\]]+)\]\((?:\.\./|(?=infra/|CHANGELOG))([^)#]+)[^)]*\)"
    return re.sub(outside, r"\1 (`\2`)", markdown)


def table(model: type[BaseModel]) -> str:
    rows = "\n".join(
        f"| `{key}` | {cell(kind)} | {cell(default)} | {cell(text)} |"
        for key, kind, default, text in keys(model)
    )
    return f"| key | type | default | what |\n|---|---|---|---|\n{rows}\n"


def keys(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str, str]]:
    for name, field in model.model_fields.items():
        key = f"{prefix}{field.alias or name}"
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from keys(inner, f"{key}.")
            continue
        kind = inner.__name__ if isinstance(inner, type) else str(inner)
        kind = re.sub(r"\b(?:\w+\.)+(?=\w)", "", kind).replace(" | ", " or ")
        yield key, f"`{kind}`", default_of(field), field.description or ""


def default_of(field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=not field.default_factory_takes_validated_data)
    if default is PydanticUndefined:
        return "required"
    return f"`{json.dumps(to_jsonable_python(default), ensure_ascii=False)}`"


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def commands(command: click.Command, path: str) -> Iterator[str]:
    if command.hidden or command.deprecated:
        return
    yield f"## {path}\n\n{re.sub(r'^ +', '', command.help or '', flags=re.MULTILINE)}\n"
    if not hasattr(command, "commands"):
        yield "| argument or option | default | what |\n|---|---|---|"
        yield from (option(one) for one in command.params if not getattr(one, "hidden", False))
        yield ""
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{path} {name}")


def option(one: click.Parameter) -> str:
    names = ", ".join(f"`{name}`" for name in (*one.opts, *one.secondary_opts))
    default = "required" if one.required else "" if one.default in (None, ()) else f"`{one.default}`"
    return f"| {names} | {cell(default)} | {cell(getattr(one, 'help', None) or '')} |"


def http_api() -> str:
    schema = create_app(ServerConfig(sampler=NoSampler()), token="t").openapi()
    operations = "\n".join(
        f"## {method.upper()} {path}\n\n{operation.get('description', '')}\n"
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    )
    schemas = json.dumps(schema.get("components", {}), indent=1)
    indented = schemas.replace("\n", "\n    ")
    return f"{operations}\n## Schemas\n\n    {indented}\n"
