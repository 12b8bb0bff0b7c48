"""The paper's ablations on the tiny world: one real training for each arm and seed, judged by the truth.

    python -m bench.ablations --max-hours 1        # goes on where the last call stopped
    python -m bench.ablations --arms base solver_only --seeds 0
    python -m bench.ablations --page               # docs/ablations.md and its plot, from the data alone

`plan.yaml` says what is compared. A cell (an arm with a seed) trains by `pipeline.train`, as `march train`
does, is measured on held-out worlds before and after, and ends as one JSON line in `bench/results/ablations`.
A finished cell is not run again; one that was killed leaves no line and begins again. It lives in `bench` and
not in `pipeline`, because it is an experiment on the product: nothing that ships imports it.
"""
