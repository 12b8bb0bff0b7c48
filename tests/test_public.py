"""What people import: `from reward import audit, AuditConfig`, and nothing heavy with it."""

import asyncio
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import reward
from reward import AuditConfig, Document, RagQuery, Verdict, audit

QUERY = RagQuery(id="1", query="How many came?", documents=(Document(id="a", text="50 people came."),))


@pytest.mark.parametrize(("response", "outcome"), [("50 people came.", "SUPPORTED"), ("60 came.", "REFUTED")])
def test_an_audit_without_a_model_takes_one_line(response: str, outcome: str) -> None:
    result = asyncio.run(audit(QUERY, response))
    assert isinstance(result.verdict, Verdict)
    assert result.verdict.outcome == outcome


def test_the_readmes_lines_of_python_run_as_they_stand() -> None:
    page = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    [lines] = re.findall(r"^In Python.*\n\n((?:    .*\n|\n)+)", page, re.MULTILINE)
    *before, last = textwrap.dedent(lines).strip().splitlines()
    known: dict[str, Any] = {}
    exec("\n".join(before), known)
    verdict = eval(last, known)
    assert last.endswith(f"# {verdict.outcome}, {verdict.claims[0].state}")


def test_prompts_default_to_those_that_the_settings_name(scripted) -> None:
    sampler = scripted(["- Question: How many came? [Answer: 50]", *["1. Evidence: x [Answer: 50]"] * 3])
    result = asyncio.run(audit(QUERY, "50 came.", sampler=sampler, config=AuditConfig(prompts="compact")))
    assert result.verdict.outcome == "SUPPORTED"
    assert sampler.requests[0].messages[0]["content"] == "proposer"
    with pytest.raises(ValueError, match="prompts: cannot read"):
        asyncio.run(audit(QUERY, "50 came.", sampler=sampler, config=AuditConfig(prompts="none.yaml")))


def test_a_response_that_is_no_text_is_named() -> None:
    response: Any = None
    with pytest.raises(ValueError, match="response: None is no text"):
        asyncio.run(reward.audit(QUERY, response))


def test_public_names_are_listed_and_others_are_errors() -> None:
    assert all(getattr(reward, name) for name in reward.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = reward.nothing


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, reward; print(sorted(m for m in sys.modules if m in ('pydantic', 'jinja2', 'torch')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
