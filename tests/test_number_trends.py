"""A number that rises, falls, is a loss or lies below the sea supports none of the opposite trend."""

import pytest

from reward.claims.numbers import find_numbers
from reward.claims.numbers.trends import Trend
from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.types import Document, Outcome, RagQuery


def refutes(document: str, answer: str) -> bool:
    query = RagQuery(id="q", query="?", documents=(Document(id="d", text=document),))
    return lexical_audit(query, answer, AuditConfig()).outcome is Outcome.REFUTED


@pytest.mark.parametrize(
    ("text", "trend"),
    [
        ("Shares fell 3.2% in early trading.", Trend.FALL_BY),
        ("It has fallen sharply to 45%.", Trend.FALL_TO),
        ("a decline in sales of 3%", Trend.FALL_BY),
        ("a 3% annual fall", Trend.FALL_BY),
        ("closed 3.4% lower at noon", Trend.FALL_BY),
        ("The bank cut its key rate to 5%.", Trend.FALL_TO),
        ("an increase of 12 percentage points", Trend.RISE_BY),
        ("a pre-tax loss of £3.1m", Trend.LOSS),
        ("a $27 million net profit", Trend.PROFIT),
        ("84 metres below sea level", Trend.BELOW),
        ("3% lower than last year", Trend.FALL_BY),
        ("3% lower than theirs", Trend.LESS_THAN),
        ("3 cm lower than theirs", Trend.NONE),  # of two that are compared either may be the subject
        ("11% above the average", Trend.ABOVE),
        ("Women make up a quarter of it.", Trend.NONE),
        ("a loss of 200 jobs", Trend.NONE),
        ("It rose 5 points. Then 60 came.", Trend.RISE_BY),  # of the first number
    ],
)
def test_the_words_beside_a_number_tell_its_trend(text: str, trend: Trend) -> None:
    assert find_numbers(text)[0].trend == trend


@pytest.mark.parametrize(
    ("document", "right", "wrong"),
    [
        ("The population has fallen by 3.2%.", "It dropped 3.2%.", "It has grown by 3.2%."),
        ("It reduced admissions by 38%.", "A reduction of 38%.", "It brought admissions down to 38%."),
        ("A net loss of $27 million.", "It lost $27 million.", "It made a profit of $27 million."),
        (
            "A 2.5 percent property tax increase.",
            "A tax increase of 2.5 percent.",
            "A tax decrease of 2.5 percent.",
        ),
        ("A net loss of $27 million.", "It lost $27 million.", "It had a net income of $27 million."),
        ("Net result: $(27) million.", "A net loss of $27 million.", "A profit of $27 million."),
        ("Sales fell 3%.", "The change was -3%.", "The change was 3% up on the year."),
        ("Change on the year: -3%.", "Sales fell by 3%.", "Sales rose by 3%."),
        ("It lies 84 m above sea level.", "Its altitude is 84 m.", "It lies 84 m below sea level."),
        ("It was built in early 2011.", "It was built at the start of 2011.", "It was built in late 2011."),
        ("Found in mid-May 2007.", "It was found in the middle of May 2007.", "Found in late May 2007."),
        ("Pay before 3 May.", "Payments after 3 May are rejected.", "Pay after 3 May."),
        ("It rose from 14% to 19%.", "It went up from 14%, to 19%.", "It dropped from 19% to 14%."),
        ("A kilo is 312p (up 9p).", "A kilo rose 9p.", "A kilo fell 9p."),
        ("Un 4,3 % menos que el anterior.", "El gasto bajó un 4,3 %.", "El gasto subió un 4,3 %."),
        ("Un 4,3 % más que el anterior.", "It rose 4.3%.", "It was 4.3% less than the last."),
        ("Il prezzo è del 12% in meno.", "È sceso del 12%.", "Il prezzo è del 12% in più."),
        (
            "Los ingresos aumentaron un 12 %.",
            "Los ingresos subieron un 12 %.",
            "Los ingresos disminuyeron un 12 %.",
        ),
        ("La firma ganó 2 millones de euros.", "A profit of €2m.", "La firma perdió 2 millones de euros."),
        ("Startup is 40% faster.", "It starts 40% quicker.", "It starts 40% slower."),
        ("Startup is 40% faster.", "Startup time fell 40%.", "Startup takes 40% longer."),
        ("A 28% premium to its close.", "The premium is 28%.", "A discount of 28%."),
        ("The motion passed 60-40.", "It was adopted by 60 to 40.", "The motion was rejected 60-40."),
        ("He was acquitted on 11 counts.", "He was cleared of 11.", "He was convicted on 11 counts."),
        # By what the one wins the other loses.
        ("They won by 12 points.", "Their rivals lost by 12 points.", "They lost by 12 points."),
        ("Imports exceeded exports by $3m.", "Exports fell short by $3m.", "Imports fell short by $3m."),
        ("He is 12 years older than Ann.", "Ann is 12 years younger.", "He is 12 years younger than Ann."),
        ("None of the 11 crew died.", "All of the 11 crew lived.", "All 11 crew died."),
        (
            "Anna Low (1 May 1920 in Ulm - 1944) sang.",
            "She was born on 1 May 1920.",
            "She died on 1 May 1920.",
        ),
        (
            "Turnout was 3 points lower than in 2019.",
            "It fell by 3 points.",
            "It is 3 points higher than before.",
        ),
        ("It was made before 1840.", "It dates from before 1840.", "It was made after 1840."),
        ("It rises by $2 to $24.", "It rises to $24.", "It is $2 lower than before."),
        (
            "It cost €3m, 200,000 less than budgeted.",
            "It was 200,000 under budget.",
            "It was 200,000 over budget.",
        ),
        (
            "It was £2m less than planned.",
            "It was £2m below target.",
            "It cost £2m more than had been planned.",
        ),
        (
            "It costs €210 less than its predecessor.",
            "€210 less.",
            "€210 more expensive than the car it replaces.",
        ),
        (
            "It came 12 days earlier than average.",
            "12 days earlier.",
            "12 days later than in an average year.",
        ),
        ("It will not come before 2026.", "It comes after 2026 begins.", "It will be out before 2026."),
        (
            "It is down 3.1 percentage points.",
            "It lost 3.1 percentage points.",
            "It gained 3.1 percentage points.",
        ),
    ],
)
def test_an_opposite_trend_is_refuted(document: str, right: str, wrong: str) -> None:
    assert not refutes(document, right)
    assert refutes(document, wrong)


@pytest.mark.parametrize(
    ("document", "right", "wrong"),
    [
        ("Give 5 ml twice a day.", "5 ml two times daily.", "5 ml three times a day."),
        ("Take it every eight hours.", "Take it three times a day.", "Take it four times daily."),
        ("It costs £14 a head.", "£14 per person.", "£14 a month."),
        ("A two-year warranty comes with it.", "It has two years of warranty.", "A three-year warranty."),
        ("It took an hour.", "It took 60 minutes.", "It took 30 minutes."),
        ("He is paid $40 a day.", "$40 a day.", "He is paid $40 an hour."),
        ("It rang at ten to nine.", "It rang at 8:50.", "It rang at 9:10."),
        ("Closed at a quarter past midnight.", "Closed at 00:15.", "Closed at a quarter to midnight."),
        ("The link gives 300 Mbit/s.", "300 megabits per second.", "300 megabytes per second."),
        ("It draws 25 µA.", "It draws 0.025 mA.", "It draws 25 mA."),
        ("Up to 250 days a year are paid.", "At most 250 days per year.", "Up to 250 days a month."),
        ("The price is at least £6,000.", "It costs £6,000 or more.", "It costs £6,000 at the most."),
        ("Some 112 branches closed.", "More than a hundred branches.", "More than two hundred branches."),
        ("The third phase begins.", "Phase 3 begins.", "Phase 4 begins."),
        ("There was one abstention.", "There was 1 abstention.", "There was 1 absence."),
        ("A survivor said that 14 survivors came.", "14 survivors came.", "1 survivor came."),
        ("Q2 2024 is published on 14 August 2024.", "Q2 2024, on 14 August.", "Q3 2024 is published."),
        ("He got 52.4% of the vote.", "More than half of the vote.", "Less than half of the vote."),
        ("He got over half of the vote.", "Over 50% of the vote.", "Over 40% of the vote."),
        ("A dividend of €0.85.", "It pays 85 euro cents.", "It pays 85 euros."),
        ("It costs at most €900.", "It is not expected ever to exceed €900.", "It will exceed €900."),
        ("It holds up to 256 nodes.", "It holds a maximum of 256 nodes.", "It holds a maximum of 265 nodes."),
        ("It reached 5,000 feet.", "It got up to about 1,520 metres.", "It got up to about 1,820 metres."),
        ("It came in second place.", "It made it to No. 2.", "It made it to No. 4."),
        ("It was given a second star.", "It has its second star.", "It has just earned its first star."),
        ("It reached second place.", "It took second place.", "It took first place."),
        ("It was the 14th win in a row.", "It has a winning run of fourteen games.", "14 games in all."),
        ("Turnout was 63%, 5 points higher.", "It was up 5 percentage points.", "It was up 5 per cent."),
        ("It takes 105 minutes.", "It takes an hour and three quarters.", "It takes an hour and a quarter."),
        ("Winds reached 45 mph.", "Winds of about 72 km/h.", "Winds of about 82 km/h."),
        ("Winds of up to 45 mph.", "Winds of up to 72 km/h.", "Winds of up to 82 km/h."),
        (
            "It takes 7.9 s to reach 100 km/h.",
            "From zero to 100 km/h in 7.9 s.",
            "From 10 to 100 km/h in 7.9 s.",
        ),
        ("Add a teaspoon of vanilla.", "Add 1 tsp of vanilla.", "Add a tablespoon of vanilla."),
        (
            "Python 3.8 is out; version 3.9 or later is required.",
            "It needs Python 3.9.",
            "Python 3.7 or later.",
        ),
    ],
)
def test_what_is_said_in_another_way_is_not_refuted_and_all_else_is(
    document: str, right: str, wrong: str
) -> None:
    assert not refutes(document, right)
    assert refutes(document, wrong)
