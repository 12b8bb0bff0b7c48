"""What a run reads and writes: its rows, and the tokens of a PPO step by role."""

from dataclasses import dataclass
from statistics import mean

from pipeline.data.prepare import MANIFEST_FILE, Manifest
from pipeline.data.statistics import PAPER
from pipeline.rows import planned_rows, rows_manifest
from pipeline.settings.recipe import Recipe
from reward.roles.prompts import load_prompts
from reward.samplers import Message
from reward.types import Document, RagQuery, Role

# The datasets of the paper's training sets; those of one set are equally large.
_TABLE1 = {"stem": (PAPER["bioasq"],), "general": (PAPER["2wikimultihopqa"], PAPER["musique"])}


@dataclass(frozen=True)
class RoleLoad:
    """One role's requests of one PPO step; tokens are means over them."""

    role: Role
    requests: float
    prompt_tokens: float
    completion_tokens: float

    @property
    def prompts(self) -> float:
        return self.requests * self.prompt_tokens

    @property
    def completions(self) -> float:
        return self.requests * self.completion_tokens


@dataclass(frozen=True)
class Workload:
    num_rows: int
    rows_source: str  # where the number of rows is from
    lengths_source: str  # where the prompts' length is from
    solver: RoleLoad
    proposer: RoleLoad
    checker: RoleLoad

    @property
    def roles(self) -> tuple[RoleLoad, ...]:
        """In the order in which they speak."""
        return (self.solver, self.proposer, self.checker)


def workload(recipe: Recipe) -> Workload:
    """Returns what a recipe reads and writes, from its rows' manifest, else from the paper's Table 1.

    Raises:
        FileNotFoundError: no manifest, and `estimate.table1` names no table either.
        ValueError: a row is longer than the recipe allows.
    """
    manifest = rows_manifest(recipe)
    num_rows, rows_source = _rows(recipe, manifest)
    prompts, assumed = load_prompts(recipe.audit.prompts), recipe.estimate
    # Of each role's prompt around an empty query, response and document.
    empty = Document(id="", text="")
    frames = {
        Role.SOLVER: _tokens(prompts.solver(RagQuery(id="", query="", documents=(empty,))), recipe),
        Role.PROPOSER: _tokens(prompts.proposer(""), recipe),
        Role.CHECKER: _tokens(prompts.checker([empty], [""]), recipe),
    }
    solver_prompt, lengths_source = _solver_prompt(recipe, manifest, frames[Role.SOLVER])
    most = recipe.max_turn_tokens
    solver = min(assumed.solver_tokens, most[Role.SOLVER])
    proposer = min(assumed.proposer_tokens, most[Role.PROPOSER])
    checker = min(assumed.checker_tokens, most[Role.CHECKER])
    documents = max(solver_prompt - frames[Role.SOLVER], 0.0)
    answers, voters = recipe.answers_per_step, recipe.audit.voters
    return Workload(
        num_rows=num_rows,
        rows_source=rows_source,
        lengths_source=lengths_source,
        solver=RoleLoad(Role.SOLVER, answers, solver_prompt, solver),
        proposer=RoleLoad(
            Role.PROPOSER, answers * assumed.proposer_calls, frames[Role.PROPOSER] + solver, proposer
        ),
        checker=RoleLoad(
            Role.CHECKER,
            answers * voters * assumed.checker_calls,
            frames[Role.CHECKER] + documents + proposer,  # the questions are the Proposer's
            checker,
        ),
    )


def _rows(recipe: Recipe, manifest: Manifest | None) -> tuple[int, str]:
    if manifest:
        return manifest.num_rows, f"{recipe.data.path}/{MANIFEST_FILE}"
    if recipe.data.is_made:
        return planned_rows(recipe), f"the world {recipe.data.source}"
    if table := recipe.estimate.table1:
        return sum(one.num_rows for one in _TABLE1[table]), f"the paper's Table 1, {table}"
    raise FileNotFoundError(
        f"data.path: {recipe.data.path} has no {MANIFEST_FILE}; write it with `march prepare` (it comes "
        "last, so a folder without one is not whole); for an estimate alone, estimate.table1: stem or general"
    )


def _solver_prompt(recipe: Recipe, manifest: Manifest | None, frame: float) -> tuple[float, str]:
    limit = recipe.rollout.max_prompt_tokens
    if manifest and manifest.mean_prompt_tokens is not None:
        return manifest.mean_prompt_tokens, f"{recipe.data.path}/{MANIFEST_FILE}"
    if table := recipe.estimate.table1:
        words = mean(one.query_words + one.document_words[0] for one in _TABLE1[table])
        tokens = frame + words * recipe.estimate.tokens_per_word
        return min(tokens, limit), f"the paper's Table 1, {table}, and the Solver's template"
    return limit / 2, "half of rollout.max_prompt_tokens: no manifest counts them"


def _tokens(messages: list[Message], recipe: Recipe) -> float:
    words = sum(len(message["content"].split()) for message in messages)
    return words * recipe.estimate.tokens_per_word
