"""Options of `march audit` as a typed job."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from orchestration.settings.sampler import BY_MODEL, audit_sampler
from orchestration.terminal.messages import warn_ignored
from reward.assignments import assign
from reward.config import AuditConfig
from reward.offline.inputs import RowFormat
from reward.offline.ragtruth import CHECKS
from reward.offline.run import AuditJob

# All that a lexical audit never looks at.
_OF_A_MODEL = {
    *("prompts", "proposer", "checker", "voters", "min_valid_voters", "proposer_retries", "min_claims"),
    *("uncovered", "coverage_penalty", "early_stop", "structured", "max_prompt_tokens", "max_parts"),
    *("seed", "verbatim_evidence", "refute_without_claims", "refute_by_lookup"),
}
_OF_A_LOOKUP = {"checks"}  # all that a model's audit never looks at


def audit_job(
    source: Path,
    out: Path | None,
    *,
    row_format: str | None,
    model: str | None,
    model_name: str | None,
    named: Mapping[str, str | int | None],
    assignments: Sequence[str],
    **run: object,
) -> AuditJob:
    """Builds the job; options without effect are named on standard error and left out.

    RAGTruth's rows are held against RAGTruth's checks, unless an assignment says which.

    Args:
        source: The rows.
        out: Where verdicts go; None for a job that writes none.
        row_format: Name of a `RowFormat`; None goes by the input's name.
        model: A model or the URL of a server; None looks numbers up.
        model_name: The model's name on that server.
        named: Keys of `AuditConfig` with options of their own; None leaves a key as it is.
        assignments: "key=value" for any other key, dots for parts of a key, values in YAML.
        **run: `limit`, `concurrency` and `overwrite` of the job.

    Raises:
        ValueError: an assignment is none, or a setting is wrong.
    """
    useless = _OF_A_LOOKUP if model else _OF_A_MODEL
    options = {key: value for key, value in named.items() if value is not None}
    tree = assign({}, assignments)
    ignored = {key if key in options else f"set {key}": True for key in sorted(useless & {*tree, *options})}
    if model is None:
        warn_ignored("without --model", model_name=model_name, **ignored)
    else:
        warn_ignored("with --model", **ignored)
    settings = {key: value for key, value in {**tree, **options}.items() if key not in useless}
    if model and not tree.get("thinking"):
        settings = BY_MODEL | settings
    job = AuditJob.model_validate(
        {
            "input": source,
            "output": out or Path(os.devnull),
            "row_format": row_format,
            "audit": AuditConfig.model_validate(settings),
            "sampler": audit_sampler(model, model_name) if model else None,
            **run,
        }
    )
    if model or "checks" in tree or job.input_format is not RowFormat.RAGTRUTH:
        return job
    line = f"RAGTruth's rows, so checks=[{', '.join(CHECKS)}] is set; --set checks=[] leaves them out"
    print(f"march: {line}", file=sys.stderr)
    return job.model_copy(update={"audit": job.audit.model_copy(update={"checks": CHECKS})})
