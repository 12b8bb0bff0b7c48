"""Exact match and F1 as the official scripts of HotpotQA, 2WikiMultihopQA and MuSiQue have them.

    HotpotQA   hotpot_evaluate_v1.py (github.com/hotpotqa/hotpot at 3635853); one answer
    2Wiki      2wikimultihop_evaluate_v1.1.py (github.com/Alab-NII/2wikimultihop at 13800e5); the same two
               functions, and the best over the answer and its aliases
    MuSiQue    metrics/answer.py (github.com/StonyBrookNLP/musique at 922ac98); the best over answer and
               aliases; "yes" and "no" are words like others, and two empty answers agree

All three normalise alike: lower case, no ASCII punctuation, no articles, single spaces. That makes "3.5"
equal "35" and "5%" equal "$5", so these figures are only shown beside others and decide nothing.
`numeric_match` holds numbers against numbers, as the audit does.
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from reward.claims.numbers import equal, parse_number, read_as

_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_CLOSED = frozenset({"yes", "no", "noanswer"})

Score = Callable[[str, str], float]


def normalise(text: str) -> str:
    """The scripts' `normalize_answer`. Example: "The 3.5%" is "35"."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split())


def exact_match(prediction: str, gold: str) -> float:
    """1 if the two are the same once normalised; of all three scripts."""
    return float(normalise(prediction) == normalise(gold))


def hotpot_f1(prediction: str, gold: str) -> float:
    """Overlap of words; 0 where one side is yes, no or noanswer and the other is not the same."""
    ours, theirs = normalise(prediction), normalise(gold)
    if ours != theirs and not _CLOSED.isdisjoint((ours, theirs)):
        return 0.0
    return _f1(ours.split(), theirs.split())


def musique_f1(prediction: str, gold: str) -> float:
    """Overlap of words; 1 where both hold none."""
    ours, theirs = normalise(prediction).split(), normalise(gold).split()
    return _f1(ours, theirs) if ours and theirs else float(ours == theirs)


def best_of(score: Score, prediction: str, golds: Sequence[str]) -> float:
    """The best score over the answer and its aliases."""
    return max(score(prediction, gold) for gold in golds)


def numeric_match(prediction: str, golds: Sequence[str]) -> float | None:
    """Whether a prediction is the same number as the answer or an alias, by `reward.claims.numbers.equal`.

    A bare number takes the kind of what it is held against ("1974" and the year 1974, "12" and "12%").

    Returns:
        None where no gold answer is a number as a whole; 0 where the prediction is none.
    """
    numbers = [number for gold in golds if (number := parse_number(gold)) is not None]
    if not numbers:
        return None
    found = parse_number(prediction.rstrip(". "))
    if found is None:
        return 0.0
    return float(any(equal(read_as(found, gold), read_as(gold, found)) for gold in numbers))


def _f1(prediction: Sequence[str], gold: Sequence[str]) -> float:
    num_same = (Counter(prediction) & Counter(gold)).total()
    if num_same == 0:
        return 0.0
    precision, recall = num_same / len(prediction), num_same / len(gold)
    return 2 * precision * recall / (precision + recall)
