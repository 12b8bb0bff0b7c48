"""Which claims are about which numbers, and which questions may stand side by side."""

import pytest

from reward.claims.kind import num_atoms
from reward.judging.coverage import blind_rounds, cover
from reward.types import Claim, RagQuery
from tests.kinds import ANY, targets


def claims(*answers: str) -> list[Claim]:
    return [Claim(index=i, question="How much?", answer=a) for i, a in enumerate(answers, start=1)]


def asked(*pairs: tuple[str, str]) -> list[Claim]:
    return [Claim(index=i, question=q, answer=a) for i, (q, a) in enumerate(pairs, start=1)]


def test_claims_are_given_numbers_one_to_one_from_left_to_right(picnic: RagQuery) -> None:
    response = "It raised 466, then 50, then 466 again."
    proposed = asked(
        ("What was raised?", "466"), ("And then?", "50"), ("How much was it then, again?", "466")
    )
    coverage = cover(response, targets(response, picnic), proposed)
    assert [c.claim.span and c.claim.span.start for c in coverage.claims] == [10, 20, 29]
    assert coverage.uncovered == ()
    assert coverage.num_dropped == 0


def test_row_03_numbers_without_a_claim_are_listed(picnic: RagQuery) -> None:
    response = "It raised 466, then 50, then 466 again."
    coverage = cover(response, targets(response, picnic), asked(("What was raised?", "466")))
    assert [response[s.start : s.end] for s in coverage.uncovered] == ["50", "466"]


def test_claims_about_numbers_that_do_not_stand_there_are_dropped(picnic: RagQuery) -> None:
    coverage = cover("It raised 466.", targets("It raised 466.", picnic), claims("7", "466", "466"))
    assert [(c.claim.index, c.claim.answer) for c in coverage.claims] == [(1, "466")]
    assert coverage.num_dropped == 2


@pytest.mark.parametrize(
    ("response", "answer", "covered"),
    [
        ("It rose 12%.", "12", True),
        ("It rose 12%.", "12%", True),
        ("It rose 12%.", "$12", False),
        ("It rose 12.", "12%", False),
        ("It drew 5k.", "5", False),
        ("It drew 5k.", "5000", True),
        ("It drew 1,200.", "1200", True),
        ("It drew 0.05.", "0.1", False),
    ],
)
def test_row_04_coverage_is_exact_and_typed(
    response: str, answer: str, covered: bool, picnic: RagQuery
) -> None:
    assert bool(cover(response, targets(response, picnic), claims(answer)).claims) is covered


def test_a_claim_takes_a_number_of_its_own_kind_first(picnic: RagQuery) -> None:
    response = "12% of 12 people"
    proposed = [
        Claim(index=1, question="How many people?", answer="12"),
        Claim(index=2, question="Which percentage?", answer="12"),
    ]
    coverage = cover(response, targets(response, picnic), proposed)
    assert [response[c.target.start : c.target.end] for c in coverage.claims] == ["12", "12%"]


def test_questions_that_give_other_answers_away_are_asked_apart(picnic: RagQuery) -> None:
    proposed = [
        Claim(index=1, question="In which year was the exam?", answer="2025"),
        Claim(index=2, question="How many took the exam in 2025?", answer="50"),
        Claim(index=3, question="How many of the 50 passed?", answer="7"),
        Claim(index=4, question="How many came by bus?", answer="9"),
    ]
    coverage = cover(
        "In 2025, 50 sat it, 7 passed, 9 by bus.",
        targets("In 2025, 50 sat it, 7 passed, 9 by bus.", picnic),
        proposed,
    )
    rounds = [[c.claim.index for c in members] for members in blind_rounds(coverage.claims)]
    assert rounds == [[1, 3, 4], [2]]


@pytest.mark.parametrize(
    ("response", "answers", "uncovered"),
    [
        ("It takes 52-59% of it.", ["52-59%"], []),  # the whole covers both ends
        ("It takes 52-59% of it.", ["52-59"], []),
        ("It takes 52-59% of it.", ["52", "59"], []),
        ("It takes 52-59% of it.", ["59"], ["52"]),
        ("It takes 52-59% of it.", ["59", "52-59"], ["52"]),  # the whole is no longer free
        ("It takes 52-59% of it.", ["52-59", "52"], []),
        ("It takes 52-59% of it.", ["52-58"], ["52", "59"]),
    ],
)
def test_a_composite_is_covered_whole_or_by_its_parts(
    response: str, answers: list[str], uncovered: list[str], picnic: RagQuery
) -> None:
    numbers = targets(response, picnic)
    assert num_atoms(numbers) == 2
    spans = cover(response, numbers, claims(*answers)).uncovered
    assert [response[s.start : s.end].strip("%") for s in spans] == uncovered


@pytest.mark.parametrize(
    ("response", "answers", "uncovered"),
    [
        ("It opened on 3 May 2021.", ["3 May 2021"], []),
        ("It opened on 3 May 2021.", ["May 3, 2021"], []),
        ("It opened on 3 May 2021.", ["3", "2021"], []),
        ("It opened on 3 May 2021.", ["2021"], ["3"]),
        ("It opened on 3 May 2021.", ["4"], ["3", "2021"]),
        ("It opens at 5:30 pm.", ["17:30"], []),
        ("It opens at 5 pm.", ["5"], []),
        ("It opens at 5 pm.", ["6"], ["5 pm"]),
        ("Open 9 am to 5 pm.", ["9 am to 5 pm"], []),
        ("Open 9 am to 5 pm.", ["5 pm"], ["9 am"]),
        ("It came 3rd.", ["3"], []),
        ("It was COVID-20.", ["20"], []),
        ("It was COVID-20.", ["21"], ["COVID-20"]),
        ("It is 5 km long.", ["5 km"], []),
        ("It is 5 km long.", ["5 miles"], ["5 km"]),
    ],
)
def test_dates_times_and_names_are_covered_by_what_their_claims_say(
    response: str, answers: list[str], uncovered: list[str], picnic: RagQuery
) -> None:
    spans = cover(response, targets(response, picnic), claims(*answers)).uncovered
    assert [response[s.start : s.end] for s in spans] == uncovered


def test_questions_about_two_dates_may_stand_together(picnic: RagQuery) -> None:
    proposed = [
        Claim(index=1, question="On which day of April did it open?", answer="3"),
        Claim(index=2, question="On which day did it close after the 7 of April?", answer="9"),
    ]
    coverage = cover(
        "It opened on 3 April and closed on 9 May.",
        targets("It opened on 3 April and closed on 9 May.", picnic),
        proposed,
    )
    assert len(coverage.claims) == 2 and len(blind_rounds(coverage.claims)) == 1


def test_a_number_in_words_is_covered_by_its_digits(picnic: RagQuery) -> None:
    coverage = cover("Four hundred came.", targets("Four hundred came.", picnic), claims("400"))
    assert [(c.claim.span.start, c.claim.span.end) for c in coverage.claims if c.claim.span] == [(0, 12)]


def test_a_bare_number_covers_a_bound_of_its_value(picnic: RagQuery) -> None:
    assert (
        cover(
            "They sold over 270 cars.", targets("They sold over 270 cars.", picnic), claims("270")
        ).uncovered
        == ()
    )


def test_coverage_of_a_long_response_is_quick(picnic: RagQuery) -> None:
    response = "5-7 and 5 and 7% " * 5_000
    coverage = cover(response, targets(response, picnic), claims(*["5", "7", "5-7", "8"] * 128))
    assert len(coverage.claims) == 384


@pytest.mark.parametrize(
    ("response", "pairs", "uncovered"),
    [
        (
            "12 people came, 12% of the members.",
            [("How many people came?", "12"), ("How many persons came?", "12")],
            ["12%"],
        ),
        (
            "12 people came, 12% of the members.",
            [("How many people came?", "12"), ("What percentage of the members came?", "12")],
            [],
        ),
        (
            "12 people and 12 dogs came.",
            [("How many people came?", "12"), ("How many humans came?", "12")],
            ["12"],
        ),
        ("12 people and 12 dogs came.", [("How many people came?", "12"), ("How many dogs came?", "12")], []),
        (
            "It cost $12 in 12 days.",
            [("How much did it cost?", "12"), ("What did it cost?", "12")],
            ["12 days"],
        ),
        ("It took 12 days.", [("How many euros did it take?", "12")], ["12 days"]),
        ("It took 12 days.", [("How long did it take?", "12")], []),
        ("It opened in 2021.", [("How many people came?", "2021")], ["2021"]),
        ("It opened in 2021.", [("When did it open?", "2021")], []),
        ("It rose 12%.", [("How much did it go up?", "12")], []),
        ("It is 5 km long.", [("How long is the 5000 m road?", "5")], []),
        ("Einstein paid 12 euros.", [("Who paid for the tower of Ulm?", "12")], []),
        ("It rose 12%.", [("Which share of women in Ulm voted?", "12")], ["12%"]),
    ],
)
def test_a_claim_covers_what_it_asks_for(
    response: str, pairs: list[tuple[str, str]], uncovered: list[str], picnic: RagQuery
) -> None:
    spans = cover(response, targets(response, picnic), asked(*pairs)).uncovered
    assert [response[s.start : s.end] for s in spans] == uncovered


@pytest.mark.parametrize(
    ("response", "question", "answer", "covered"),
    [
        ("274 families lived in Dabiran.", "What was the life expectancy of Dabiran?", "274", False),
        ("There were 61 families in Ulm.", "What was the population of Ulm?", "61", False),
        ("There were 61 families in Ulm.", "How many people lived in Ulm?", "61", False),
        ("There were 61 families in Ulm.", "How many families lived in Ulm?", "61", True),
        ("There were 61 families in Ulm.", "What was the number of families in Ulm?", "61", True),
        ("There were 61 families in Ulm.", "What does the text say of Ulm?", "61", True),
        ("The population of Ulm was 274.", "How many families were there in Ulm?", "274", False),
        ("The population of Ulm was 274.", "How many inhabitants did Ulm have?", "274", True),
        ("In Ulm lived 274 people.", "What was the population of Ulm?", "274", True),
        ("Its population was 274, in 61 families.", "What was its population?", "61", False),
        ("Its population was 274, in 61 families.", "How many families were there?", "61", True),
        ("The number of families in Ulm was 61.", "How many families were there in Ulm?", "61", True),
        ("The number of families in Ulm was 61.", "What was the population of Ulm?", "61", False),
        ("12 voters came to Ulm.", "How many people came to Ulm?", "12", True),
        ("12 goats came to Ulm.", "How many animals came to Ulm?", "12", True),
        ("12 old goats came to Ulm.", "How many goats came to Ulm?", "12", True),
        ("The arena in Ulm has 500 seats.", "What is the capacity of the arena?", "500", True),
        ("1,284 patients took part.", "How many participants were there?", "1,284", True),
        ("The mayor of Ulm was 61.", "How old was the mayor of Ulm?", "61", True),
        ("The road to Ulm is 8 km long.", "What is the population of Ulm?", "8", False),
        ("Ann Lee was born in 1920.", "When did Ann Lee die?", "1920", False),
        ("Ann Lee was born in 1920.", "What is the date of birth of Ann Lee?", "1920", True),
        ("Ann Lee was born in 1920 and died in 1990.", "When was Ann Lee born?", "1990", False),
        ("Ann Lee was born in 1920 and died in 1990.", "When did Ann Lee die?", "1920", False),
        ("Ann Lee was born in 1920 and died in 1990.", "When did Ann Lee die?", "1990", True),
        ("In 1990 Ann Lee died.", "When was Ann Lee born?", "1990", False),
        ("The film came out in 1990.", "When was the film released?", "1990", True),
    ],
)
def test_a_question_for_another_thing_covers_nothing(
    response: str, question: str, answer: str, covered: bool, picnic: RagQuery
) -> None:
    assert bool(cover(response, targets(response, picnic), asked((question, answer))).claims) is covered


@pytest.mark.parametrize(
    ("question", "covered"),
    [
        ("How many families were there?", False),
        ("How many people were there?", True),
        ("Which number is it?", True),
    ],
)
def test_a_bare_number_is_of_what_the_query_asks_for(question: str, covered: bool) -> None:
    query = ANY.model_copy(update={"query": "What was the population of Ulm?"})
    assert bool(cover("61.", targets("61.", query), asked((question, "61"))).claims) is covered


@pytest.mark.parametrize(
    ("response", "question", "answer", "is_covered"),
    [
        ("Ann Lee was born in 1990. Bea Roth was born in 1993.", "When was Ann Lee born?", "1993", False),
        ("Ann Lee was born in 1990 and Bea Roth was born in 1993.", "When was Ann Lee born?", "1993", False),
        ("Ann Lee was born in 1990. Bea Roth was born in 1993.", "When was Bea Roth born?", "1993", True),
        ("Ann Lee was born in 1990. Bea Roth was born in 1993.", "When was Roth born?", "1993", True),
        (
            "Ann F. Lee was born in 1990. Bea Roth was born in 1993.",
            "When was Ann F. Lee born?",
            "1990",
            True,
        ),
        ("The year of birth of Bea Roth is 1993. Ann Lee is older.", "When was Ann Lee born?", "1993", False),
        ("Ann Lee came from Oslo. She was born in 1990.", "When was Ann Lee born?", "1990", True),
        (
            "Ann Lee came from Oslo. Her parents moved to Rome in 1993.",
            "When did Ann Lee move?",
            "1993",
            True,
        ),
        ("Bea Roth, a sister of Ann Lee, was born in 1993.", "When was Ann Lee's sister born?", "1993", True),
        ("Bea Roth was born in 1993.", "When was the younger Ann Lee born?", "1993", True),  # an alias, maybe
    ],
)
def test_a_question_about_another_subject_of_the_response_covers_nothing(
    response: str, question: str, answer: str, is_covered: bool, picnic: RagQuery
) -> None:
    coverage = cover(response, targets(response, picnic), asked((question, answer)))
    assert bool(coverage.claims) is is_covered
