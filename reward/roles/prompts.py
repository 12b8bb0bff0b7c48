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

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from jinja2 import StrictUndefined, Template, TemplateError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from reward.samplers import Message
from reward.samplers.special import neutralise
from reward.types import Document, RagQuery, Role

_FOLDER = Path(__file__).parent / "prompts"
_VARIABLES: dict[Role, tuple[str, ...]] = {
    Role.SOLVER: ("documents", "query"),
    Role.PROPOSER: ("response",),
    Role.CHECKER: ("documents", "questions"),
}
_OPTIONAL: dict[Role, tuple[str, ...]] = {Role.PROPOSER: ("min_questions", "kinds"), Role.CHECKER: ("kinds",)}
_NUMBERS: Final = ("number",)


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
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True
    )
    environment.globals.clear()  # with the filter below: a rendering depends on its values alone
    del environment.filters["random"]
    roles = {role: _role_prompt(environment, name_or_path, role, source[role]) for role in Role}
    digest = hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()
    prompts = PromptSet(roles=roles, digest=digest)
    _probe(name_or_path, prompts)
    return prompts


def _read(where: str) -> dict[str, dict[str, str]]:
    shipped = {path.stem: path for path in sorted(_FOLDER.glob("*.yaml"))}
    try:
        loaded: object = yaml.safe_load(shipped.get(where, Path(where)).read_text(encoding="utf-8"))
    except OSError as error:
        fix = f"give one of {', '.join(shipped)}, or the path of a YAML file"
        raise ValueError(f"prompts: cannot read {where!r} ({error.strerror}); {fix}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"prompts: {where} is not YAML in UTF-8: {' '.join(str(error).split())}") from error
    roles = _exact_keys(loaded, {role.value for role in Role}, f"prompts: {where}")
    return {role: _texts(texts, f"prompts: {where}: {role}") for role, texts in roles.items()}


def _exact_keys(value: object, keys: set[str], where: str) -> dict[str, object]:
    if not isinstance(value, dict) or set(value) != keys:
        found = sorted(map(str, value)) if isinstance(value, dict) else type(value).__name__
        raise ValueError(f"{where} has {found}; give a mapping with exactly the keys {sorted(keys)}")
    return value


def _texts(value: object, where: str) -> dict[str, str]:
    texts = {}
    for key, text in _exact_keys(value, {"system", "user"}, where).items():
        if not isinstance(text, str):
            raise ValueError(f"{where}.{key} is {text!r}; give text in quotes (it may be empty)")
        texts[key] = text
    return texts


def _role_prompt(
    environment: ImmutableSandboxedEnvironment, where: str, role: Role, texts: Mapping[str, str]
) -> RolePrompt:
    templates = {}
    for key, text in texts.items():
        place = f"prompts: {where}: {role}.{key}"
        try:
            named = meta.find_undeclared_variables(environment.parse(text))
            templates[key] = environment.from_string(text)
        except TemplateError as error:
            raise ValueError(f"{place} is not a valid template: {error}") from error
        allowed = [*_VARIABLES[role], *_OPTIONAL.get(role, ())]
        if unknown := sorted(named - set(allowed)):
            raise ValueError(f"{place} names {unknown}; a {role} template may name {allowed}")
    return RolePrompt(**templates)


def _probe(where: str, prompts: PromptSet) -> None:
    """Renders each role once with marked values: a wrong template fails on loading, not in an audit."""
    documents = [Document(id="probe-id", title="probe-title", text="probe-documents")]
    values: dict[str, object] = {
        "documents": documents,
        "query": "probe-query",
        "response": "probe-response",
        "questions": ["probe-questions"],
        "min_questions": 3,
        "kinds": ["number"],
    }
    for role, names in _VARIABLES.items():
        place = f"prompts: {where}: {role}"
        try:
            shown = (*names, *_OPTIONAL.get(role, ()))
            messages = prompts.roles[role].render(**{name: values[name] for name in shown})
        except (TemplateError, TypeError) as error:
            raise ValueError(f"{place} cannot be rendered: {error}") from error
        text = "\n".join(message["content"] for message in messages)
        for name in names:
            if f"probe-{name}" not in text:
                raise ValueError(f"{place} never shows {name}; add it to the user template")
