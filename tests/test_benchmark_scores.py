"""From generations and judgements to scores: by hand, or by the official script where it says so."""

import json
from collections.abc import Sequence

import pytest

from pipeline.evaluate.benchmark import Prompt, PromptStyle
from pipeline.evaluate.benchmarks import make_benchmark
from pipeline.evaluate.benchmarks.contextual_judge_bench import POSITIVE_FIRST, POSITIVE_SECOND
from pipeline.evaluate.majority import Judgement, majority
from pipeline.statistics import ItemScores
from tests.benchmark_files import item_scores, items_of


def judged(votes: str) -> list[Judgement | None]:
    """One generation a letter: + passed, - did not, ? could not be judged."""
    found = {"+": Judgement(passed=True, label="yes"), "-": Judgement(passed=False, label="no"), "?": None}
    return [found[vote] for vote in votes]


@pytest.mark.parametrize(
    ("votes", "passed", "tie", "mean"),
    [
        ("++++++++", True, False, 1.0),
        ("+++++---", True, False, 5 / 8),
        ("++++----", False, True, 0.5),
        ("+++-----", False, False, 3 / 8),
        ("++++---?", True, False, 4 / 7),
        ("+++---??", False, True, 0.5),
        ("++++????", True, False, 1.0),
        ("+++?????", None, None, 1.0),
        ("????????", None, None, None),
        ("+", True, False, 1.0),
        ("-", False, False, 0.0),
        ("?", None, None, None),
        ("", None, None, None),
    ],
)
def test_the_majority(votes: str, passed: bool | None, tie: bool | None, mean: float | None) -> None:
    found = majority(judged(votes))
    assert (found.passed, found.tie, found.mean) == (passed, tie, mean)
    assert found.unjudged == (votes.count("?") / len(votes) if votes else None)


def score(name: str, replies: Sequence[str], *, text: str = "An answer.") -> dict[str, float | None]:
    """The scores of the benchmark's first item, whose judge replies so, one reply a generation."""
    benchmark, item = make_benchmark(name), items_of(name)[0]
    (prompt,) = benchmark.prompts(item, PromptStyle.PLAIN)
    found = [(text, benchmark.read_judgement(item, prompt, one)) for one in replies]
    return item_scores(benchmark, item, {prompt.name: found})


def verdict(classification: str) -> str:
    return json.dumps({"reasoning": "so", "classification": classification})


GOOD, BAD, INVALID, NONSENSE = verdict("Consistent"), verdict("Inconsistent"), verdict("Invalid"), "I think"


@pytest.mark.parametrize("name", ["ragtruth", "faithbench"])
@pytest.mark.parametrize(
    ("replies", "consistent", "official", "invalid"),
    [
        ([GOOD], 1, 1, 0),
        ([BAD], 0, 0, 0),
        ([INVALID], 0, 0, 1),  # generate_table.py counts Invalid as hallucinated
        ([NONSENSE], None, 0, None),  # the official script takes it for Inconsistent
        ([GOOD, GOOD, GOOD, BAD, NONSENSE, NONSENSE], 1, 0, 0),
        ([GOOD] * 4 + [BAD] * 4, 0, 0, 0),
        ([], None, None, None),
    ],
)
def test_faithjudge(
    name: str, replies: list[str], consistent: float, official: float, invalid: float
) -> None:
    found = score(name, replies)
    assert found["consistent"] == consistent
    assert found["consistent_unparsed_is_inconsistent"] == official
    assert found["invalid"] == invalid


def facts(*labels: str, following: str = "No Issues") -> str:
    sentences = [{"sentence": "s", "label": label, "rationale": "r", "excerpt": ""} for label in labels]
    return json.dumps({"sentences": sentences, "instruction_following": following})


@pytest.mark.parametrize(
    ("reply", "factual", "grounded", "ineligible"),
    [
        (facts("supported", "no_rad"), 1, 1, 0),
        (facts("supported", "unsupported"), 0, 0, 0),
        (facts("contradictory"), 0, 0, 0),
        (facts("no_rad", following="Minor Issue(s)"), 1, 1, 0),
        (facts("supported", following="Major Issue(s)"), 0, 1, 1),
        (facts("unsupported", following="Major Issue(s)"), 0, 0, 1),
        (facts(), None, None, None),
        (facts("maybe"), None, None, None),
        ('{"sentences": []}', None, None, None),
    ],
)
def test_facts(reply: str, factual: float, grounded: float, ineligible: float) -> None:
    found = score("facts_grounding", [reply])
    assert (found["factual"], found["grounded"], found["ineligible"]) == (factual, grounded, ineligible)


A, B, X = "Because.\n\n**Result:** A", "Because.\n\n**Result:** B", "I cannot say."


@pytest.mark.parametrize(
    ("first", "second", "official"),
    # What the official pairwise_parsing and compute_acc print (utils.py at 4d480a9): consistent accuracy,
    # consistency, accuracy with the positive response first and second.
    [
        (A, A, [0, 0, 1, 0]),
        (A, B, [1, 1, 1, 1]),
        (B, A, [0, 1, 0, 0]),
        (B, B, [0, 0, 0, 1]),
        (A, X, [0, 0, 1, 0]),
        (B, X, [0, 0, 0, 0]),
        (X, A, [0, 0, 0, 0]),
        (X, B, [0, 0, 0, 1]),
        (X, X, [0, 1, 0, 0]),
    ],
)
def test_pairs_as_the_official_script(first: str, second: str, official: list[int]) -> None:
    found = pair_scores([first], [second])
    ours = [
        found[name]
        for name in (
            "consistent_accuracy",
            "consistency",
            "positive_first_accuracy",
            "positive_second_accuracy",
        )
    ]
    assert found["official_accuracy"] == official[0]
    if X in (first, second):  # what was not read is not scored
        assert ours == [None, None, None if first == X else official[2], None if second == X else official[3]]
        assert found["unjudged"] == (1.0 if first == second else 0.5)
    else:
        assert ours == official


def pair_scores(first: Sequence[str], second: Sequence[str]) -> dict[str, float | None]:
    benchmark, item = make_benchmark("contextual_judge_bench"), items_of("contextual_judge_bench")[0]
    found = {}
    for name, texts in ((POSITIVE_FIRST, first), (POSITIVE_SECOND, second)):
        prompt = Prompt(name=name)
        found[name] = [(text, benchmark.read_judgement(item, prompt, text)) for text in texts]
    return item_scores(benchmark, item, found)


def test_pairs_by_the_majority_of_each_order() -> None:
    right = pair_scores([A, A, A, B], [B, B, B, A])
    assert (right["consistent_accuracy"], right["consistency"], right["tie"]) == (1, 1, 0)
    tied = pair_scores([A, A, B, B], [A, A, A, B])  # a tie is not passed, and agrees with nothing
    assert (tied["consistent_accuracy"], tied["consistency"], tied["tie"]) == (0, 0, 1)
    assert pair_scores([], [])["official_accuracy"] is None


def qa(value: str) -> str:
    return json.dumps({"reasoning": "so", "verdict": value})


def test_answers_have_the_judges_accuracy_and_the_official_figures() -> None:
    # the first row's answer is "writer": EM 0 and F1 2/3 of "a writer man", EM 1 and F1 1 of "the writer."
    right = score("hotpotqa", [qa("correct")] * 2, text="Both write.\nAnswer: the writer.")
    assert (right["accuracy"], right["em"], right["f1"]) == (1, 1, 1)
    near = score("hotpotqa", [qa("incorrect"), NONSENSE, NONSENSE], text="Answer: a writer man")
    assert (near["accuracy"], near["em"], near["unjudged"]) == (None, 0, pytest.approx(2 / 3))
    assert near["f1"] == pytest.approx(2 / 3)
    long = score("hotpotqa", [qa("correct")], text="They were writers both")
    assert (long["accuracy"], long["em"], long["f1"]) == (1, 0, 0)


def test_calibration_scores_become_kappa() -> None:
    benchmark = make_benchmark("faithbench_judge")
    scored = []
    for item in items_of("faithbench_judge"):
        (prompt,) = benchmark.prompts(item, PromptStyle.PLAIN)
        # a judge that calls all consistent but 1-1, and cannot be read on 1-5
        reply = {"1-0/1-1": BAD, "1-4/1-5": NONSENSE}.get(item.id, GOOD)
        one = (prompt.given or "", benchmark.read_judgement(item, prompt, reply))
        scores = item_scores(benchmark, item, {prompt.name: [one]})
        scored.append(ItemScores(item=item.id, slice=item.slice, cluster=item.cluster, scores=scores))
    # people: 1-0 +, 1-1 -, 1-2 +, 1-3 -, 1-4 -, 1-5 +; the judge: + - + + + ?
    assert [one.scores["agreement"] for one in scored] == [1, 1, 1, 0, 0, None]
    # observed 3/5, by chance (2*4 + 3*1) / 25 = 11/25: kappa (15 - 11) / (25 - 11)
    kappa = benchmark.estimates(scored)["cohens_kappa"]
    assert (kappa.value, kappa.num_items, kappa.num_unscored) == (pytest.approx(4 / 14), 5, 1)
