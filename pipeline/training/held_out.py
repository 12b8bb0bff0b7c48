"""Judged while it trains: what the answers to the held-out set say of a policy, which look was the best, and
when it is enough.

An answer counts by two things: what its audit says, and whether it is right, where that is known (a world's
truth, or the row's own answers). A policy that says nothing is never wrong and never right, so neither alone
chooses a policy. `held_out/score` is the share of all answers that are right and not refuted; where nobody
knows what is right, that are supported.

| audit | right | not right | not known |
|---|---|---|---|
| SUPPORTED | 1 | 0 | 1 |
| NO_CLAIMS | 1 | 0 | 0 |
| REFUTED | 0 | 0 | 0 |
| UNSCORED | 0 | 0 | 0 |

An audit fails by the policy's own output, too, so a policy that breaks its audits is no better for it. The
other rates are of the scored answers, `held_out/unscored_rate` of all. Above `guards.max_unscored_rate` a
look has no score, and says nothing of better or worse. The audit is the run's own, by the policy of now; the
truth does not learn along.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from pipeline.record.checkpoints import model_of
from pipeline.record.rollout_record import RolloutRecord
from pipeline.record.tracking import read_steps
from pipeline.settings.sources import HeldOutSettings
from pipeline.training.trainer_settings import TrainerSettings
from pipeline.worlds.known import is_right
from reward.roles.asking import answer_of
from reward.types import Outcome, RagQuery

HELD_OUT_FOLDER, ANSWERS_FILE = "held_out", "answers.json"
SCORE = "held_out/score"
Answers = Mapping[str, tuple[str, ...]]  # by the query's id; for rows of a file
_ANSWERS = TypeAdapter(dict[str, tuple[str, ...]])


@dataclass(frozen=True)
class Look:
    """A step after which the held-out set was answered."""

    step: int
    score: float


def best_look(found: Sequence[Look]) -> Look | None:
    """The look with the highest score, the first one of equals; None without any."""
    return max(found, key=lambda look: look.score, default=None)


def is_over(looks: Sequence[Look], asked: HeldOutSettings) -> bool:
    """Whether the last looks were no better than the best, as many as the patience has."""
    best = best_look(looks)
    if asked.patience is None or best is None:
        return False
    return len(looks) - 1 - looks.index(best) >= asked.patience


def recorded_looks(run_dir: Path) -> list[Look]:
    """The looks of a run with a score, in order, from the best one on whose model is there.

    A roll-back may go behind the look for which the model of an earlier one was removed.
    """
    found = [Look(int(step["step"]), step[SCORE]) for step in read_steps(run_dir) if SCORE in step]
    best = best_look([look for look in found if model_of(run_dir / "checkpoints", look.step).is_dir()])
    return [look for look in found if best and look.step >= best.step and look.score <= best.score]


class HeldOut:
    """Of one run, in the trainer's process; a resumed run goes on with the looks of the one before."""

    def __init__(self, asked: HeldOutSettings, settings: TrainerSettings) -> None:
        self.asked, self._settings = asked, settings
        self.looks = recorded_looks(settings.run_dir)
        self._answers = read_answers(settings.run_dir)

    def is_due(self, step: int) -> bool:
        """Whether the held-out set is answered after a step; after the last one it is."""
        return step % self.asked.every == 0 or step == self._settings.num_steps

    @property
    def best(self) -> Look | None:
        return best_look(self.looks)

    def is_over(self) -> bool:
        return is_over(self.looks, self.asked)

    def judged(self, answers: Sequence[tuple[RagQuery, RolloutRecord]], step: int) -> dict[str, float]:
        """The figures of a look, which is remembered if it has a score."""
        rights = [self._is_right(query, record) for query, record in answers]
        outcomes = [record.verdict.outcome for _, record in answers]
        limit = self._settings.recipe.guards.max_unscored_rate
        metrics = held_out_metrics(outcomes, rights, max_unscored_rate=limit)
        if SCORE in metrics:
            self.looks.append(Look(step, metrics[SCORE]))
        return metrics

    def _is_right(self, query: RagQuery, record: RolloutRecord) -> bool | None:
        if record.oracle is not None and self.asked.path is None:  # the tiny world's judges any row
            return record.oracle.right
        answer = answer_of(record.response, self._settings.recipe.audit)
        return is_right(query, answer, self._answers.get(query.id, ()))


def held_out_metrics(
    outcomes: Sequence[Outcome], rights: Sequence[bool | None], *, max_unscored_rate: float
) -> dict[str, float]:
    """Figures of one look.

    Args:
        outcomes: (N,) what the audits say.
        rights: (N,) whether each answer is right; None where nobody knows.
        max_unscored_rate: Above it there is no score.
    """
    pairs = list(zip(outcomes, rights, strict=True))
    scored = [(outcome, right) for outcome, right in pairs if outcome is not Outcome.UNSCORED]
    unscored_rate = 1 - len(scored) / len(pairs)
    metrics = {"held_out/num_answers": float(len(pairs)), "held_out/unscored_rate": unscored_rate}
    if not scored:
        return metrics
    counts = Counter(outcome for outcome, _ in scored)
    for outcome in (Outcome.SUPPORTED, Outcome.REFUTED, Outcome.NO_CLAIMS):
        metrics[f"held_out/{outcome.value.lower()}_rate"] = counts[outcome] / len(scored)
    known = [right for _, right in scored if right is not None]
    if known:
        metrics["held_out/right_rate"] = sum(known) / len(known)
    if unscored_rate <= max_unscored_rate:
        metrics[SCORE] = sum(_counts(outcome, right) for outcome, right in scored) / len(pairs)
    return metrics


def _counts(outcome: Outcome, right: bool | None) -> bool:
    return outcome is Outcome.SUPPORTED if right is None else right and outcome is not Outcome.REFUTED


def read_answers(run_dir: Path) -> Answers:
    """The accepted answers of the held-out rows that have some."""
    path = run_dir / HELD_OUT_FOLDER / ANSWERS_FILE
    return _ANSWERS.validate_json(path.read_bytes()) if path.is_file() else {}


def write_answers(run_dir: Path, answers: Answers) -> None:
    """Writes them beside the held-out rows; no policy and no auditor is shown them."""
    (run_dir / HELD_OUT_FOLDER / ANSWERS_FILE).write_bytes(_ANSWERS.dump_json(dict(answers)))
