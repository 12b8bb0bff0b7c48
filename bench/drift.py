"""How often drift is found, and how often where there is none: drawn streams of production answers.

Each look has 200 new answers about 60 new sources; a source has a difficulty of its own (correlation within
it 0.2). The bound is that of `march retrain --if-due` with its defaults; beside it are two that people use
instead: a look that ignores the looks before it, and the bare mean.

    python -m bench drift        writes results/drift.json
"""

import time

import numpy as np

from bench.measure import write_result
from orchestration.retrain.triggers import DriftSettings
from orchestration.schedule.drift import Tally, look_alpha, lower_bound

RATES = (0.03, 0.05, 0.07, 0.1, 0.15)
SHOWN_LOOKS = (1, 5, 20)
NUM_STREAMS = 1_000
NUM_SOURCES, NUM_ANSWERS = 60, 200
_CORRELATION = 0.2
_WAYS = ("as it is", "each look alone", "bare mean")


def first_alarms(rate: float, settings: DriftSettings, *, seed: int) -> dict[str, int | None]:
    """The look at which each way starts a retraining, from 1; None: at none of them.

    Args:
        rate: True share of refuted answers.
        settings: Of the trigger.
        seed: Of numpy's generator.
    """
    generator, tallies = np.random.default_rng(seed), list[Tally]()
    found: dict[str, int | None] = dict.fromkeys(_WAYS)
    concentration = (1 - _CORRELATION) / _CORRELATION
    for num_looks in range(SHOWN_LOOKS[-1]):
        hard = generator.beta(rate * concentration, (1 - rate) * concentration, NUM_SOURCES)
        sizes = 1 + generator.multinomial(NUM_ANSWERS - NUM_SOURCES, np.full(NUM_SOURCES, 1 / NUM_SOURCES))
        refuted = generator.binomial(sizes, hard)
        tallies += [Tally(int(one), int(size)) for one, size in zip(refuted, sizes, strict=True)]
        mean = sum(one.num_refuted for one in tallies) / sum(one.num_scored for one in tallies)
        values = (
            lower_bound(tallies, look_alpha(settings, num_looks)),
            lower_bound(tallies, settings.alpha),
            mean,
        )
        for way, value in zip(_WAYS, values, strict=True):
            if found[way] is None and value > settings.max_unfaithful:
                found[way] = num_looks + 1
        if None not in found.values():
            break
    return found


def run() -> None:
    """Draws the streams and writes which share of them had started a retraining after some looks."""
    settings, start = DriftSettings(verdicts=("*.jsonl",)), time.perf_counter()
    figures = {}
    for rate in RATES:
        streams = [first_alarms(rate, settings, seed=seed) for seed in range(NUM_STREAMS)]
        figures[f"{rate:g}"] = {
            way: {str(looks): _share([one[way] for one in streams], looks) for looks in SHOWN_LOOKS}
            for way in _WAYS
        }
    write_result(
        "drift",
        samples_s={"all": [time.perf_counter() - start]},
        figures={
            "streams": NUM_STREAMS,
            "answers_a_look": NUM_ANSWERS,
            "sources_a_look": NUM_SOURCES,
            "correlation": _CORRELATION,
            "allowed": settings.max_unfaithful,
            "alpha": settings.alpha,
            "started_by_true_rate": figures,
        },
    )


def _share(alarms: list[int | None], looks: int) -> float:
    return sum(one is not None and one <= looks for one in alarms) / len(alarms)
