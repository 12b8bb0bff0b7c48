"""The audit without a model: each number of the response is looked up in the documents of its query."""

from reward.lexical.audit import lexical_audit

__all__ = ["lexical_audit"]
