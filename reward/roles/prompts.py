"""The three roles' prompts: Jinja templates from a YAML file, rendered from structured records.

A set of prompts is one YAML file (`reward/roles/prompts/full.yaml`, `compact.yaml`, or a user's own) with the
roles `solver`, `proposer` and `checker`, each with a `system` and a `user` template. Documents and questions
are passed as records and lists; nothing is cut back out of prompt text, so a passage that says "Question:" is
only a passage.

The Checker is blind by construction: `PromptSet.checker` takes documents and questions and nothing else, and
a Checker template that names any other variable is refused on loading (paper section 2.2, "Blinded Auditor").
The Proposer is shown the response; its template may also name `min_questions`, how many questions at least.
Both templates may name `kinds`, the kinds of claims that are checked.

What reads like a special token ("<|im_start|>") is broken up in every message, whoever wrote it: no document
and no response opens a turn of its own (reward/samplers/special.py).

Templates run in Jinja's sandbox without its global functions; an unknown variable is an error, never an empty
string.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from jinja2 import StrictUndefined, Template, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import ValidationError

from reward.config import Settings
from reward.problems import SAID_WHOLE, problems, shown
from reward.provenance import json_sha256
from reward.samplers import Message
from reward.samplers.special import neutralise
from reward.types import Document, RagQuery, Role
from reward.user_yaml import load_yaml

_FOLDER = Path(__file__).parent / "prompts"
_VARIABLES: dict[Role, tuple[str, ...]] = {
    Role.SOLVER: ("documents", "query"),
    Role.PROPOSER: ("response",),
    Role.CHECKER: ("documents", "questions"),
}
_OPTIONAL: dict[Role, tuple[str, ...]] = {Role.PROPOSER: ("min_questions", "kinds"), Role.CHECKER: ("kinds",)}
_PROBES: Mapping[str, object] = {
    "documents": [Document(id="probe-id", title="probe-title", text="probe-documents")],
    "query": "probe-query",
    "response": "probe-response",
    "questions": ["probe-questions"],
    "min_questions": 3,
    "kinds": ["number"],
}
_NUMBERS: Final = ("number",)


class _Texts(Settings):
    system: str
    user: str


class _File(Settings):
    solver: _Texts
    proposer: _Texts
    checker: _Texts


@dataclass(frozen=True)
class RolePrompt:
    """The two templates of one role."""

    system: Template
    user: Template

    def render(self, **values: object) -> list[Message]:
        """The role's messages, special tokens broken up; an empty system text gives no system message."""
        system = neutralise(self.system.render(**values))
        user = Message(role="user", content=neutralise(self.user.render(**values)))
        return [Message(role="system", content=system), user] if system else [user]


@dataclass(frozen=True)
class PromptSet:
    """The prompts of all roles and the digest that names them in every verdict."""

    roles: Mapping[Role, RolePrompt]
    digest: str  # SHA-256 (hex) of the templates; comments and layout of the file do not change it

    def solver(self, query: RagQuery) -> list[Message]:
        """The Solver's messages: the documents and the query."""
        return self.roles[Role.SOLVER].render(documents=query.documents, query=query.query)

    def proposer(
        self, response: str, *, min_questions: int = 1, kinds: Sequence[str] = _NUMBERS
    ) -> list[Message]:
        """The Proposer's messages: the response and, where the template names them, least count and kinds."""
        role = self.roles[Role.PROPOSER]
        return role.render(response=response, min_questions=min_questions, kinds=kinds)

    def checker(
        self, documents: Sequence[Document], questions: Sequence[str], *, kinds: Sequence[str] = _NUMBERS
    ) -> list[Message]:
        """The Checker's messages: the documents and the questions, which the template numbers from 1."""
        return self.roles[Role.CHECKER].render(documents=documents, questions=questions, kinds=kinds)


def load_prompts(name_or_path: str) -> PromptSet:
    """Loads a shipped set of prompts by its name ("full", "compact"), or any YAML file like them by its path.

    Raises:
        ValueError: the set is not found, is not YAML, lacks a role or a key, or a template is wrong; one line
            that says where and how to fix it.
    """
    source = _read(name_or_path)
    environment = prompt_environment(keep_trailing_newline=True)
    roles = {
        role: _role_prompt(environment, f"prompts: {name_or_path}: {role}", role, source[role])
        for role in Role
    }
    return PromptSet(roles, digest=json_sha256(source))


def prompt_environment(**layout: bool) -> ImmutableSandboxedEnvironment:
    """Makes what renders prompts: in a sandbox, from its values alone; `layout` is Jinja's."""
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False, **layout)
    environment.globals.clear()
    del environment.filters["random"]
    return environment


def _read(where: str) -> dict[str, dict[str, str]]:
    shipped = {path.stem: path for path in sorted(_FOLDER.glob("*.yaml"))}
    try:
        loaded: object = load_yaml(shipped.get(where, Path(where)).read_text(encoding="utf-8"))
        return _File.model_validate(loaded).model_dump()
    except OSError as error:
        fix = f"give one of {', '.join(shipped)}, or the path of a YAML file"
        raise ValueError(f"prompts: cannot read {where!r} ({error.strerror}); {fix}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"prompts: {where} is not YAML in UTF-8: {' '.join(str(error).split())}") from error
    except ValidationError as error:
        problem = problems(error)[0]
        field = ".".join(map(str, problem["loc"])) or "the file"
        found = "" if problem["type"] in SAID_WHOLE else f" (found {shown(problem['input'])})"
        raise ValueError(
            f"prompts: {where}: {field}: {problem['msg']}{found}; give exactly solver, proposer and checker, "
            "each with the texts system and user"
        ) from error
    except ValueError as error:
        raise ValueError(f"prompts: {where}: {error}") from error


def _role_prompt(
    environment: ImmutableSandboxedEnvironment, place: str, role: Role, texts: Mapping[str, str]
) -> RolePrompt:
    """Compiles both templates and renders them once: a wrong one fails on loading, not in an audit."""
    allowed = [*_VARIABLES[role], *_OPTIONAL.get(role, ())]
    templates = {}
    for key, text in texts.items():
        try:
            named = meta.find_undeclared_variables(environment.parse(text))
            templates[key] = environment.from_string(text)
        except TemplateError as error:
            raise ValueError(f"{place}.{key} is not a valid template: {error}") from error
        if unknown := sorted(named - set(allowed)):
            raise ValueError(f"{place}.{key} names {unknown}; a {role} template may name {allowed}")
    prompt = RolePrompt(**templates)
    try:
        messages = prompt.render(**{name: _PROBES[name] for name in allowed})
    except (TemplateError, TypeError) as error:
        raise ValueError(f"{place} cannot be rendered: {error}") from error
    shown = "\n".join(message["content"] for message in messages)
    for name in _VARIABLES[role]:
        if f"probe-{name}" not in shown:
            raise ValueError(f"{place} never shows {name}; add it to the user template")
    return prompt
