"""What a rule measures of an answer beside its verdict: official EM and F1; of made-up worlds, coverage."""

from __future__ import annotations

from inspect_ai.scorer import Score, Scorer, Target, scorer
from inspect_ai.solver import TaskState

from pipeline.evaluate.tasks.naming import of_march
from pipeline.evaluate.tasks.samples import asked_of, generations_of
from pipeline.evaluate.tasks.scores import FIGURES, KIND, MEASURES, Kind, as_values, unanswered


@scorer(metrics=FIGURES, name="march/rules")
@of_march
def rules() -> Scorer:
    """Measures each answer; no judge is asked."""

    async def score(state: TaskState, target: Target) -> Score:
        asked = asked_of(state)
        ((name, generation),) = generations_of(state, asked.prompts).items()
        found = asked.benchmark.measured(asked.item, name, generation.text)
        about = {**asked.about, MEASURES: list(found)}
        if generation.failure:
            return unanswered(about, Kind.RULES, generation.failure)
        metadata = {**about, KIND: Kind.RULES.value}
        return Score(value=as_values(found), answer=generation.text, metadata=metadata)

    return score
