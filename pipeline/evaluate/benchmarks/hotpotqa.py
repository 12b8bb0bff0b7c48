"""HotpotQA, distractor setting: ten paragraphs, of which two are needed.

`pipeline/data/hotpotqa.py` has URL, licence (CC BY-SA 4.0) and example rows of both layouts. The file is
`hotpot_dev_distractor_v1.json`; the test sets have no answers. EM and F1 are those of
hotpot_evaluate_v1.py; the supporting facts are not asked for.
"""

from __future__ import annotations

from pipeline.data.hotpotqa import HotpotRelevance, HotpotRow
from pipeline.evaluate.benchmarks.multihop import AnsweredRow, MultiHopBenchmark, multihop_card
from pipeline.evaluate.official_qa import hotpot_f1


class _Row(HotpotRow, HotpotRelevance, AnsweredRow): ...


class HotpotQA(MultiHopBenchmark):
    """HotpotQA's development set."""

    file, row, f1 = "hotpot_dev_distractor_v1.json", _Row, staticmethod(hotpot_f1)
    card = multihop_card(
        "hotpotqa", "HotpotQA", "https://hotpotqa.github.io", "CC-BY-SA-4.0", "hotpot_evaluate_v1.py"
    )
