"""Kinds of claims for tests, made for a query."""

from typing import Any

from reward.claims import kinds_for, targets_of
from reward.claims.kind import ClaimKind, Target
from reward.config import AuditConfig
from reward.types import Document, RagQuery

ANY = RagQuery(id="any", query="", documents=(Document(id="d", text=""),))


def numbers(**settings: Any) -> AuditConfig:
    """Settings of an audit of numbers alone, as the paper's."""
    return AuditConfig.model_validate({"kinds": ["number"], **settings})


def kinds(*names: str, query: RagQuery = ANY) -> dict[str, ClaimKind]:
    """The named kinds; numbers alone by default."""
    return kinds_for(AuditConfig.model_validate({"kinds": names or ("number",)}), query)


def targets(response: str, query: RagQuery = ANY, *names: str) -> list[Target]:
    """What must be checked of a response."""
    return targets_of(response, kinds(*names, query=query))
