"""OpenRLHF's agent: the Solver's turn on the live engine, then the audit by the reward server.

OpenRLHF's rollout actor loads `pipeline/training/agent.py`, which points here, and calls
`AgentExecutor.execute` once a sample. The returned dict is OpenRLHF's own plus one key, `rollout`: a
`RolloutRecord`, which `pipeline.training.experience.MarchSamplesGenerator` reads. A reward server that is
gone is waited for, and the step with it: neither OpenRLHF nor Ray bounds a rollout in time, and no engine
sleeps and no weight changes before all answers are there. An audit that failed leaves `reward` at None; it is
masked there and never becomes a number here.
"""

import logging
import os
import time
from collections.abc import Sequence
from copy import deepcopy
from functools import cached_property
from typing import Any

from openrlhf.utils.agent import AgentExecutorBase
from opentelemetry.trace import SpanKind

from pipeline.record.rollout_record import RolloutRecord, turn_reward
from pipeline.training.credit import ENDED, choose_turn, valid_turns
from pipeline.training.oracle import oracle_for
from pipeline.training.trainer_settings import TrainerSettings
from reward import telemetry
from reward.judging.vote import Reason
from reward.roles.asking import answer_of
from reward.serving.client import RewardClient, RewardServerError, UntrustedAnswer
from reward.types import AuditResult, Outcome, RagQuery, Role, Trajectory, Verdict

TO_ANSWER_S = 20.0  # after an audit's deadline, so that the server's own answer comes first

logger = logging.getLogger(__name__)


class AgentExecutor(AgentExecutorBase):  # type: ignore[misc]  # OpenRLHF is untyped
    def __init__(self) -> None:
        self.settings = TrainerSettings.from_environment()
        self.recipe = self.settings.recipe
        self.judge = oracle_for(self.recipe.oracle, self.recipe.data.wiki)
        telemetry.start("march-rollout")

    @cached_property
    def client(self) -> RewardClient:
        """Made on first use, inside the actor's event loop."""
        return RewardClient(
            self.settings.reward_urls,
            os.environ["MARCH_REWARD_TOKEN"],
            timeout_s=self.recipe.reward.deadline_s + TO_ANSWER_S,
            patience_s=self.recipe.reward.patience_s,
            signing_key=os.environ["MARCH_SIGNING_KEY"],  # a reward is believed only when it is signed
        )

    async def execute(
        self,
        prompt: str,
        label: str,
        sampling_params: Any,
        max_length: int,
        hf_tokenizer: Any,
        llm_engine: Any,
        images: Any = None,
    ) -> dict[str, Any]:
        """Returns OpenRLHF's sample with a `rollout` record; `reward` is None when the audit failed.

        Raises:
            ValueError: a prompt that leaves no room for the response. OpenRLHF would keep its last tokens
                only, and the audit would then hold the Solver to documents that it never saw.
        """
        query = RagQuery.model_validate_json(label)
        prompt_ids = hf_tokenizer(text=prompt, add_special_tokens=False)["input_ids"]
        if len(prompt_ids) + sampling_params.max_tokens > max_length:
            raise ValueError(
                f"query {query.id!r}: prompt of {len(prompt_ids)} tokens and response of "
                f"{sampling_params.max_tokens} exceed {max_length}; filter it with `march prepare "
                "--max-prompt-tokens`"
            )
        with telemetry.span("march.rollout", {"march.query_id": query.id}) as span:
            versions, start = [llm_engine.weights_version], time.perf_counter()
            output = await _generate(llm_engine, prompt_ids, sampling_params)
            generation_s = time.perf_counter() - start
            versions.append(llm_engine.weights_version)
            response = hf_tokenizer.decode(output.token_ids, skip_special_tokens=True)
            record = await self._audit(
                query, response, finish_reason=output.finish_reason, solver_versions=versions
            )
            telemetry.record_verdict(span, record.verdict)
        measured = {
            "generation_s": generation_s,
            "turn_tokens": record.turn_tokens | {Role.SOLVER: (len(output.token_ids),)},
            "num_prompt_tokens": len(prompt_ids),
            "num_response_tokens": len(output.token_ids),
            "finish_reason": output.finish_reason,
        }
        return {
            "prompt": prompt,
            "label": label,
            "images": None,
            "mm_train_inputs": None,
            "reward": record.verdict.reward,
            "scores": record.verdict.reward,
            "observation_tokens": [*prompt_ids, *output.token_ids],
            "action_ranges": [(len(prompt_ids), len(prompt_ids) + len(output.token_ids))],
            "rollout_log_probs": _log_probs(len(prompt_ids), output),
            "truncated": output.finish_reason == "length",
            "extra_logs": {},
            "rollout": record.model_copy(update=measured),
        }

    async def _audit(
        self, query: RagQuery, response: str, *, finish_reason: str, solver_versions: Sequence[int] = ()
    ) -> RolloutRecord:
        start = time.perf_counter()
        with telemetry.span("audit") as span:
            result = await self._asked(query, response, finish_reason)
            telemetry.record_verdict(span, result.verdict)
        credit = self.recipe.ppo.checker_credit
        paid = [t for t in result.trajectories if turn_reward(t, result.verdict, credit) is not None]
        turns = {role: valid_turns([t for t in paid if t.role is role]) for role in Role}
        seed = f"{self.recipe.seed}/{query.id}/{response}"
        chosen = {
            role: turn for role in self.recipe.train_roles if (turn := choose_turn(turns[role], seed=seed))
        }
        return RolloutRecord(
            query_id=query.id,
            response=response,
            verdict=result.verdict,
            unanswerable=query.unanswerable,
            turns=chosen,
            spare_turns={
                role: tuple(one for one in turns[role] if one is not turn) for role, turn in chosen.items()
            },
            checker_credit=credit,
            num_checker_turns=sum(t.role is Role.CHECKER for t in result.trajectories),
            weights_versions=_versions_by_role(solver_versions, result.trajectories),
            turn_tokens=_turn_tokens(result.trajectories),
            oracle=self.judge(query, answer_of(response, self.recipe.audit), result.verdict),
            audit_s=time.perf_counter() - start,
        )

    async def _asked(self, query: RagQuery, response: str, finish_reason: str) -> AuditResult:
        """What the reward server says; what it cannot say is UNSCORED, and is not asked for again."""
        if finish_reason not in ENDED:  # an engine that gave up has not answered, whatever it had written
            return _unscored(query, Reason.ENGINE, f"the Solver's generation ended by {finish_reason!r}")
        try:
            return await self.client.audit(query, response, include_trajectories=True)
        except UntrustedAnswer as error:
            return _unscored(query, Reason.UNTRUSTED, str(error))
        except RewardServerError as error:
            return _unscored(query, Reason.REWARD_SERVER, str(error))


async def _generate(engine: Any, prompt_ids: list[int], sampling_params: Any) -> Any:
    """The Solver's turn: vLLM's `CompletionOutput`."""
    attributes = {"gen_ai.operation.name": "text_completion", "march.role": Role.SOLVER.value}
    with telemetry.span("solver.generate", attributes, kind=SpanKind.CLIENT) as span:
        params = deepcopy(sampling_params)
        params.logprobs = 0  # of the sampled token: held against the actor's (`experience.sync_metrics`)
        output = (await engine.generate(prompt_ids, params)).outputs[0]
        span.set_attribute("gen_ai.usage.input_tokens", len(prompt_ids))
        span.set_attribute("gen_ai.usage.output_tokens", len(output.token_ids))
        span.set_attribute("gen_ai.response.finish_reasons", [str(output.finish_reason)])
        if output.finish_reason not in ENDED:
            telemetry.fail(span, str(output.finish_reason))
    return output


def _versions_by_role(solver: Sequence[int], turns: Sequence[Trajectory]) -> dict[Role, tuple[int, ...]]:
    """The weights versions of each role's turns; of the Solver's, before and after it answered."""
    versions = {Role.SOLVER: set(solver)}
    for turn in turns:
        if turn.weights_version is not None:
            versions.setdefault(turn.role, set()).add(turn.weights_version)
    return {role: tuple(sorted(found)) for role, found in versions.items()}


def _turn_tokens(turns: Sequence[Trajectory]) -> dict[Role, tuple[int, ...]]:
    roles = sorted({turn.role for turn in turns})
    return {role: tuple(len(t.response_token_ids) for t in turns if t.role is role) for role in roles}


def _unscored(query: RagQuery, reason: Reason, detail: str) -> AuditResult:
    logger.warning("%s: no verdict: %s: %s", query.id, reason, detail)
    verdict = Verdict(id=query.id, outcome=Outcome.UNSCORED, reward=None, reason=reason, detail=detail)
    return AuditResult(verdict=verdict)


def _log_probs(num_prompt_tokens: int, output: Any) -> list[float] | None:
    """(P + A,) log-probabilities under the engine, zero over the prompt; None if it gives none."""
    if output.finish_reason not in ENDED:  # masked
        return [0.0] * (num_prompt_tokens + len(output.token_ids))
    if output.logprobs is None:
        return None
    sampled = [
        by_token[token].logprob for by_token, token in zip(output.logprobs, output.token_ids, strict=True)
    ]
    return [0.0] * num_prompt_tokens + sampled
