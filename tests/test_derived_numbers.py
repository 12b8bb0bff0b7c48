"""Numbers that a response works out from two of its documents, and what else it says of them."""

import pytest

from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.types import Document, Outcome, RagQuery

SALES = "Sales rose to 84,000 tonnes in 2022 from 79,500 in 2021. Exports came to 12,000 tonnes."
TOWERS = (
    "The north tower is 88 metres high. The tower in Ulm rises to 61 metres, the one in Bern to 52 metres."
)
SHIPS = "The ferry Aurora takes 1,200 passengers and 300 cars. Her sister, the Borealis, takes 600 and 240."
LIVES = "Anna Brolin was born in 1889. She took up the chair at Lund in 1924 and held it until 1955."
RACE = "Ruth Chebet won in 2:21:07. Second was Alem Desta in 2:21:49, and Holly Crane came third in 2:24:30."
FINES = "The court fined the agent 90,000 dollars and the captain 15,000 dollars."
SHARES = "Coverage was 94.1 percent in 2016. It had dropped to 91.6 percent by 2020."
VOTES = "In the runoff Pekk received 23,100 votes and Ilves 21,800."
ROWING = "Jana Horák rowed 2,000 metres in 7 minutes 41 seconds. Eva Malá needed 7 minutes 58 seconds."
ICE = "Surveys put the thickness of the ice at 118 metres in 1985 and 91 metres in 2015."
PUMP = "The pump gave 900 litres a day in April. In August the yield dropped to 450 litres."
FARM = "The farm keeps 60 goats and 20 sheep."
APP = "The app had 40,000 users at the end of March and 52,000 at the end of April. May closed on 55,000."
LOANS = (
    "Loans of printed books decreased from 198,000 to 163,000, while e-book loans rose from 22,000 to 71,000."
)

MEETING = (
    "The mayor opened the meeting at 6:34 p.m. The minutes were approved. "
    "The contract was awarded. The meeting ended at 9:12 p.m."
)


def audit(document: str, answer: str) -> tuple[bool, list[str]]:
    """Whether nothing is refuted, and what is said of each claim."""
    query = RagQuery(id="q", query="?", documents=(Document(id="d", text=document),))
    verdict = lexical_audit(query, answer, AuditConfig())
    return verdict.outcome is Outcome.SUPPORTED, [claim.note for claim in verdict.claims]


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        (SALES, "Sales were 84,000 tonnes in 2022, 4,500 more than the year before."),
        (SALES, "Sales grew by 4,500 tonnes to 84,000 tonnes."),
        (SALES, "In 2022 sales were 4,500 tonnes higher than in 2021."),
        (TOWERS, "The tower in Ulm is nine metres taller than the one in Bern."),
        (TOWERS, "At 52 metres, the tower in Bern is 9 metres lower than the one in Ulm."),
        (SHIPS, "The Aurora takes twice as many passengers as the Borealis."),
        (SHIPS, "Between them the Aurora and the Borealis can carry 540 cars."),
        (LIVES, "Brolin held the chair at Lund for 31 years."),
        (RACE, "Chebet finished 42 seconds ahead of Desta."),
        (RACE, "Crane came in 2 minutes and 41 seconds after Desta."),
        (FINES, "The fine for the agent was six times the captain's."),
        (FINES, "In total the court imposed fines of 105,000 dollars on the agent and the captain."),
        (SHARES, "In 2020 coverage was 2.5 percentage points lower than in 2016."),
        (VOTES, "Pekk won the runoff by 1,300 votes."),
        (LOANS, "Loans of printed books declined by 35,000."),
        (LOANS, "Loans of e-books more than tripled, from 22,000 to 71,000."),
        (ROWING, "Malá needed 17 seconds more than Horák."),
        (ICE, "The ice thinned by 27 metres over 30 years."),
        (ICE, "Between 1985 and 2015 the ice lost 27 metres."),
        (PUMP, "The pump yielded half as much in August as in April."),
        (FARM, "The farm has three times as many goats as sheep."),
        (MEETING, "The meeting ran for 2 hours and 38 minutes."),
    ],
)
def test_what_follows_from_two_numbers_is_supported(document: str, answer: str) -> None:
    is_supported, notes = audit(document, answer)
    assert is_supported, notes


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        (SALES, "Sales were 84,000 tonnes in 2022, 5,500 more than the year before."),
        (SALES, "Sales were 84,000 tonnes in 2022, 4,500 fewer than the year before."),
        (SALES, "Sales fell by 4,500 tonnes to 84,000 tonnes."),
        (TOWERS, "The tower in Bern is nine metres taller than the one in Ulm."),
        (TOWERS, "The tower in Ulm is 19 metres taller than the one in Bern."),
        (SHIPS, "The Aurora takes four times as many passengers as the Borealis."),
        (SHIPS, "The Borealis takes twice as many passengers as the Aurora."),
        (SHIPS, "Between them the Aurora and the Borealis can carry 640 cars."),
        (RACE, "Chebet finished 52 seconds ahead of Desta."),
        (RACE, "Desta finished 42 seconds ahead of Chebet."),
        (FINES, "The captain's fine was six times the agent's."),
        (SHARES, "In 2020 coverage was 2.5 percentage points higher than in 2016."),
        (SHARES, "In 2020 coverage was 2.5 percent lower than in 2016."),
        (VOTES, "Ilves beat Pekk by 1,300 votes."),
        (LOANS, "Loans of printed books rose by 35,000."),
        (LOANS, "Loans of printed books came to 35,000."),
        (ROWING, "Horák needed 17 seconds more than Malá."),
        (ICE, "The ice grew 27 metres thicker between 1985 and 2015."),
        (PUMP, "The pump yielded twice as much in August as in April."),
        (FARM, "The farm has three times as many sheep as goats."),
        (APP, "The app added 12,000 users in May."),
        (MEETING, "The meeting ran for 2 hours and 48 minutes."),
    ],
)
def test_a_wrong_sum_or_direction_is_refuted(document: str, answer: str) -> None:
    is_supported, notes = audit(document, answer)
    assert not is_supported, notes


def test_the_note_shows_the_sum() -> None:
    _, notes = audit(SALES, "Sales grew by 4,500 tonnes to 84,000 tonnes.")
    assert "worked out from the documents: 84,000 tonnes - 79,500" in notes


def test_two_numbers_that_the_response_does_not_point_to_say_nothing() -> None:
    """Any small number is the difference of some two of a long document."""
    document = " ".join(
        f"Hut {name} lies at {height} metres."
        for name, height in zip("ABCDEFGH", range(900, 980, 10), strict=True)
    )
    is_supported, _ = audit(document, "The chapel is 30 metres higher than the inn.")
    assert not is_supported


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        (
            "Der Umsatz stieg 2022 auf 86 Millionen Euro.",
            "Trotz der Krise stieg der Umsatz auf 86 Millionen Euro.",
        ),
        ("Le club de Metz a reçu 45 000 euros.", "Le club a obtenu de la ville 45 000 euros."),
        ("El museo abrió en 1998 en Loja.", "Cuando abrió en 1998, el museo estaba en Loja."),
        ("Il traghetto parte alle 8:30 da Ponza.", "Chi prende il traghetto parte da Ponza alle 8:30."),
        ("L'usine de Valmy emploie 430 personnes.", "C'est à Valmy que travaillent les 430 personnes."),
    ],
)
def test_the_first_word_of_a_foreign_sentence_is_no_name(document: str, answer: str) -> None:
    is_supported, notes = audit(document, answer)
    assert is_supported, notes


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        ("Berlin hat 3,7 Millionen Einwohner.", "Hamburg hat 3,7 Millionen Einwohner."),
        ("Anna Meier kaufte das Haus 1998.", "Peter Schulz kaufte das Haus 1998."),
        ("Allen sold 3 cars.", "Will Barker sold 3 cars."),
    ],
)
def test_a_wrong_name_that_opens_a_sentence_is_refuted(document: str, answer: str) -> None:
    assert not audit(document, answer)[0]


@pytest.mark.parametrize(
    ("document", "wrong", "right"),
    [
        (
            "Male bustards weigh up to 16 kg, females up to 5 kg.",
            "Female bustards weigh up to 16 kg.",
            "The males reach 16 kg, and females reach 5 kg.",
        ),
        (
            "He was born in 1917 and died in 1990.",
            "He died in 1917.",
            "He was dead by 1990, 73 years after his birth in 1917.",
        ),
        (
            "The treaty was signed in May 1904 and ratified in June 1905.",
            "The treaty was ratified in May 1904.",
            "Signed in May 1904, it was ratified in June 1905.",
        ),
        (
            "Tin melts at 232 degrees and boils at 2,602 degrees.",
            "Tin boils at 232 degrees.",
            "Tin melts at 232 degrees.",
        ),
    ],
)
def test_a_value_of_the_opposite_is_refuted(document: str, wrong: str, right: str) -> None:
    assert not audit(document, wrong)[0]
    assert audit(document, right)[0]


LAPTOPS = "Model | Price | Rating\nAero 16 | €1,399 | 5\nAria 13 | €899 | 3"
PLANS = "| Plan | 2022 | 2023 |\n|---|---|---|\n| Starter | €1,149 | €1,199 |\n| Team | €1,399 | €1,449 |"


@pytest.mark.parametrize(
    ("document", "right", "wrong"),
    [
        (
            PLANS,
            "Team cost €1,449, €50 more than the year before.",
            "Team cost €1,449, €60 more than the year before.",
        ),
        (
            PLANS,
            "In 2023 Team cost €1,449, €250 more than Starter.",
            "In 2023 Team cost €1,449, €250 less than Starter.",
        ),
        (
            "Six production sites and two sales offices were visited.",
            "Eight places were visited (six production sites and two sales offices).",
            "Nine places were visited (six production sites and two sales offices).",
        ),
        (
            "Of the 450 contracts 414 were renewed.",
            "Of 450 contracts 414 were renewed, 36 were not.",
            "Of 450 contracts 414 were renewed, 46 were not.",
        ),
        (
            "We had 10,410 people; now there are 9,870.",
            "Headcount fell by roughly 5%, from 10,410 to 9,870.",
            "Headcount fell by roughly 8%, from 10,410 to 9,870.",
        ),
        (
            "We had 10,410 people; now there are 9,870.",
            "Headcount fell by 5.2%, from 10,410 to 9,870.",
            "Headcount rose by 5.2%, from 10,410 to 9,870.",
        ),
        (
            "Works on Friday, from 22:00 to 02:00. Call one week before.",
            "The works take 4 hours, from 22:00 to 02:00.",
            "The works take 6 hours, from 22:00 to 02:00.",
        ),
        (
            "Leave is extended from 12 to 16 weeks.",
            "Leave goes up by four weeks, to 16 weeks.",
            "Leave goes up by five weeks, to 16 weeks.",
        ),
    ],
)
def test_what_an_answer_works_out_must_be_right(document: str, right: str, wrong: str) -> None:
    assert audit(document, right)[0]
    assert not audit(document, wrong)[0]


SURVEY = (
    "The survey covered 450 schools. Of them 414 are new. In 2019 there were 36 buses. "
    "Staff: 120 nurses and 84 doctors."
)
PRICES = "Region | 2020 | 2021\nNorth | 120 | 150\nSouth | 80 | 60"


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        (SURVEY, "There were 534 nurses (450 and 84)."),  # of two sentences
        (SURVEY, "There were 204 people (120 and 84)."),  # nothing is counted
        (SURVEY, "Of the 450 schools, 120 closed; 330 remain."),
        ("Room 40 was small. 40 men came.", "The team has 80 women (40 tall women and 40 short women)."),
        ("The lake is 12 m deep, the tower 80 m high.", "The bridge is 92 m long (12 m and 80 m)."),
        ("It met from 2000 to 2020, in 3 towns.", "Sales rose 1% from 2000 to 2020."),
        ("The price was 40 in 1990 and 60 in 2010.", "Its share is 50% after the price rose from 40 to 60."),
        ("The price was 40 in 1990 and 60 in 2010.", "The price eroded by 50% from 40 to 60."),
        (PRICES, "South rose by 25% from 120 to 150."),
        (PRICES, "The North sold 150 in 2021. The South sold 30 more than in 2020."),
        (LAPTOPS, "The Aero 16 is rated 5, 2 years older than the Aria 13."),
        (LAPTOPS, "The Aero 16 costs €1,399. The Aria 13 costs €899. The Aria 13 costs €500 more."),
        (
            "The office is open from 8:00 to 18:00; call a day before.",
            "It takes 14 hours, from 8:00 to 18:00.",
        ),
        ("(in thousands)\nStaff | 2021\nEmployees | 1,200", "There were 1.2 million employees in 2021."),
    ],
)
def test_numbers_that_have_nothing_to_do_with_each_other_give_none(document: str, answer: str) -> None:
    supported, notes = audit(document, answer)
    assert not supported, notes
