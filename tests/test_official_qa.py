"""EM and F1 equal the official scripts'.

The expected values of `CASES` were printed by the official scripts themselves (the commits are named in
`pipeline/evaluate/benchmarks/multihop.py`): HotpotQA's and 2Wiki's gave the same for each pair, and MuSiQue's
the last column. The other tests were worked out by hand.
"""

import pytest

from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.evaluate.benchmarks.multihop import exact_match, hotpot_f1, musique_f1, normalise
from pipeline.evaluate.benchmarks.prompts import ANSWER
from tests.benchmark_files import items_of

CASES = [  # prediction, gold, EM, F1 of HotpotQA and 2Wiki, F1 of MuSiQue
    ("Green Bay", "Green Bay", 1.0, 1.0, 1.0),
    ("the Green Bay.", "Green Bay", 1.0, 1.0, 1.0),
    ("Green Bay, Wisconsin", "Green Bay", 0.0, 0.8, 0.8),
    ("yes", "no", 0.0, 0, 0.0),
    ("Yes.", "yes", 1.0, 1.0, 1.0),
    ("no answer", "no", 0.0, 0, 0.666667),
    ("yes it is", "yes", 0.0, 0, 0.5),
    ("noanswer", "no", 0.0, 0, 0.0),
    ("3.5", "35", 1.0, 1.0, 1.0),
    ("1.000", "1,000", 1.0, 1.0, 1.0),
    ("$5", "5%", 1.0, 1.0, 1.0),
    ("25 million", "25,000,000", 0.0, 0, 0.0),
    ("1950\u20131953)", "1950-1953", 0.0, 0, 0.0),
    ("", "Green Bay", 0.0, 0, 0.0),
    ("the", "a", 1.0, 0, 1.0),
    ("", "", 1.0, 0, 1.0),
    ("an apple a day", "apple day", 1.0, 1.0, 1.0),
    ("Nightwing", "Nightwing / Dick Grayson", 0.0, 0.5, 0.5),
    ("AC/DC", "AC DC", 0.0, 0, 0.0),
    ("na\u00efve Caf\u00e9", "naive cafe", 0.0, 0, 0.0),
    ("U.S.", "US", 1.0, 1.0, 1.0),
    ("Martin O'Neill", "Martin ONeill", 1.0, 1.0, 1.0),
    ("to be or not to be", "not to be", 0.0, 0.666667, 0.666667),
    ("August 10, 1933", "10 August 1933", 0.0, 1.0, 1.0),
    ("\ufb01ve", "five", 0.0, 0, 0.0),
    ("\u2167 VIII", "viii", 0.0, 0.666667, 0.666667),
    ("The the", "theory", 0.0, 0, 0.0),
    ("\u0130stanbul", "istanbul", 0.0, 0, 0.0),
    ("x\u00a0y", "x y", 1.0, 1.0, 1.0),
]


@pytest.mark.parametrize(("prediction", "gold", "em", "f1", "musique"), CASES)
def test_as_the_official_scripts(prediction: str, gold: str, em: float, f1: float, musique: float) -> None:
    assert exact_match(prediction, gold) == em
    assert hotpot_f1(prediction, gold) == pytest.approx(f1, abs=1e-6)
    assert musique_f1(prediction, gold) == pytest.approx(musique, abs=1e-6)


def test_normalising_by_hand() -> None:
    assert normalise("The 3.5%  of\tan  Apple's A-team.") == "35 of apples ateam"


def test_the_best_alias_counts() -> None:
    # MuSiQue's own script gives 2/3 for these: one of the two words of "Dick Grayson"
    golds = ("Nightwing / Dick Grayson", "Nightwing", "Dick Grayson")
    item = items_of("musique")[0].model_copy(update={"references": golds})
    measured = make_benchmark("musique").measured
    assert measured(item, ANSWER, "Grayson") == {"em": 0.0, "f1": pytest.approx(2 / 3)}
    assert measured(item, ANSWER, "dick grayson")["em"] == 1.0
