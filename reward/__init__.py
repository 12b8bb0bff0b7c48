"""The audit: does every number of a response stand in its documents?

A pure core (types, numbers, prompts, parsing, vote) and an HTTP edge (server, client). Nothing here imports
torch, ray, vllm, openrlhf or mlflow at module level, so that an audit installs and starts without the
training stack.

    import asyncio
    from reward import Document, RagQuery, audit

    query = RagQuery(id="1", query="How many came?", documents=(Document(id="a", text="50 people came."),))
    print(asyncio.run(audit(query, "60 people came.")).verdict.outcome)  # REFUTED, without any model
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reward.auditor import audit
    from reward.config import AuditConfig
    from reward.types import Document, RagQuery, Verdict

__all__ = ["AuditConfig", "Document", "RagQuery", "Verdict", "audit"]

_HOMES = {
    "AuditConfig": "reward.config",
    "Document": "reward.types",
    "RagQuery": "reward.types",
    "Verdict": "reward.types",
    "audit": "reward.auditor",
}


def __getattr__(name: str) -> object:
    """Imports a public name when it is first used, so that `import reward` alone costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)
