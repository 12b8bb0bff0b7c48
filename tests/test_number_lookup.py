"""Documents and answers in which only the writing of a number decides, through the audit without a model."""

import pytest

from reward.config import AuditConfig
from reward.lexical import lexical_audit
from reward.types import Document, Outcome, RagQuery


def outcome(documents: list[str], response: str) -> Outcome:
    held = tuple(Document(id=str(place), text=text) for place, text in enumerate(documents))
    query = RagQuery(id="1", query="What is known of it?", documents=held)
    return lexical_audit(query, response, AuditConfig()).outcome


@pytest.mark.parametrize(
    ("document", "response", "is_supported"),
    [
        ("The road is 1,500 km long.", "The road is 1.5 km long.", False),
        ("The road is 1,500 m long.", "The road is 1.5 km long.", True),
        ("The club has 1,234 members.", "The club has 1.234 members.", False),
        ("The fair was on 3/5/2021.", "The fair was on 5/3/2021.", False),
        ("The fair was on 3/5/2021.", "The fair was on 3/5/2021.", True),
        ("The fair was on 3/5/2021.", "The fair was on 3 May 2021.", True),
        ("The fair was on 3/5/2021, the ball on 25/5/2021.", "The fair was on March 5, 2021.", False),
        ("The fair was on 3/5/2021, the ball on 25/5/2021.", "The fair was on 3 May 2021.", True),
        ("The fair was on 02.01.2021.", "The fair was on 01.02.2021.", False),
        ("Der Verein hat 1.500 Mitglieder und ist bekannt.", "Der Verein hat 1.500 Mitglieder.", True),
        ("Der Verein hat 1.500 Mitglieder und ist bekannt.", "The club has 1,500 members and is well.", True),
        ("Der Verein hat 1.500 Mitglieder und ist bekannt.", "The club has 1.5 members and is well.", False),
        ("It weighs 500 mg.", "It weighs 1 g.", False),
        ("It cost $600 million.", "It cost $1 billion.", False),
        ("It took 31 minutes.", "It took 1 hour.", False),
        ("It took 10 days.", "It took 1 week.", False),
        ("It took 17 months.", "It took 1 year.", False),
        ("It took 58 minutes.", "It took 1 hour.", True),
        ("It raised $1,234,567.", "It raised $1.2 million.", True),
        ("There are 270 cars.", "There are over 270 cars.", False),
        ("There are over 270 cars.", "There are over 270 cars.", True),
        ("There are more than 270 cars.", "There are over 270 cars.", True),
        ("There are 270+ cars.", "There are over 270 cars.", True),
        ("There are 281 cars.", "There are over 270 cars.", True),
        ("There are 5,000 cars.", "There are over 270 cars.", False),
        ("There are under 270 cars.", "There are over 270 cars.", False),
        ("There are 270 cars.", "There are at least 270 cars.", True),
        ("There are 12 cars.", "There are more than 0 cars.", False),
        ("It opens at 9:30.", "It opens at 9:30 pm.", True),
        ("It opens at 9:30 am.", "It opens at 9:30 pm.", False),
    ],
)
def test_one_document_decides(document: str, response: str, is_supported: bool) -> None:
    expected = Outcome.SUPPORTED if is_supported else Outcome.REFUTED
    assert outcome([document], response) is expected


def test_a_document_is_read_by_the_other_documents_and_never_by_the_answer() -> None:
    german = "Der Verein ist in der Stadt bekannt."
    assert outcome(["1.500 Mitglieder", german], "The club has 1,500 members and is well known.") is (
        Outcome.SUPPORTED
    )
    answer = "Der Verein ist bekannt und hat 1500 Mitglieder."
    assert outcome(["Members: 1.500"], answer) is Outcome.REFUTED


SPANISH = "El índice subió un 4,3 % en la planta, según el sindicato, hasta los 3.475.200,50 euros."
FRENCH = "Le tribunal a condamné la société le 17 juillet 2011, soit 12,5 % du montant, et elle a fait appel."
RELEASED = "The album was released on 17.05.2019 and is her fourth."


@pytest.mark.parametrize(
    ("documents", "right", "wrong"),
    [
        (["Over 1,700 people have signed it at the town hall.", SPANISH, FRENCH], "over 1,700", "over 1.7"),
        (["1,700 people signed.", SPANISH], "1,700 people signed.", "1,800 people signed."),
        (["Die Stadt ist bekannt und hat 1.700 Ärzte.", RELEASED, RELEASED], "1.700 Ärzte", "1.800 Ärzte"),
        (["She was born on 8 December 1969.", RELEASED, FRENCH], "12/8/1969", "12/9/1969"),
        (["Er ist am 12/8/1969 geboren und mit ihr verwandt.", RELEASED], "on 12 August 1969", "12/8/1970"),
    ],
)
def test_each_text_is_read_by_itself_and_then_by_those_of_its_language(
    documents: list[str], right: str, wrong: str
) -> None:
    assert [outcome(documents, one) for one in (right, wrong)] == [Outcome.SUPPORTED, Outcome.REFUTED]


TABLE = """Selected data (in thousands, except per share):

| | FY2020 | FY2019 |
|---|---|---|
| Net sales | $842,310 | $901,774 |
| Net income (loss) | (18,446) | 22,130 |
| Diluted EPS | $(0.47) | $0.56 |

The company closed 43 stores and bought nine."""


@pytest.mark.parametrize(
    ("document", "right", "wrong"),
    [
        (TABLE, "Net sales were about $842 million.", "Net sales were about $842 billion."),
        (TABLE, "Net sales were $842,310 thousand.", "Net sales were $841,310 thousand."),
        (TABLE, "Net sales were $842,310.", "Net sales rose by $842.3 million."),
        (TABLE, "The net loss was $18.4 million.", "The net profit was $18.4 million."),
        (TABLE, "A net loss of $18.4 million, or 47 cents a share", "A net profit, or 47 cents a share"),
        (TABLE, "It closed 43 stores.", "The loss was $43,000."),
        (TABLE, "Sales in fiscal 2020 were $842.3 million.", "Sales in fiscal 2021 were $842.3 million."),
        (TABLE, "The loss was $0.47 a share.", "The loss was $470 a share."),
        ("in GBP million\nRevenue 1,284", "Revenue was £1.28 billion.", "Revenue was £1.284 million."),
        ("EUR m | 2020\nRevenue | 1,483.5", "It was €1,483.5 million.", "It was $1,483.5 million."),
        ("Amounts in thousands of dollars. Sales 842,310", "Sales: $842.3 million", "Sales: €842.3 million"),
        ("Sold in thousands of shops: 43.", "It made $43.", "It made $43,000."),
        ("The pre-tax loss widened to £(12.9)m.", "The loss was £12.9m.", "The profit was £12.9m."),
    ],
)
def test_the_heading_of_a_table_gives_its_scale(document: str, right: str, wrong: str) -> None:
    assert [outcome([document], one) for one in (right, wrong)] == [Outcome.SUPPORTED, Outcome.REFUTED]


@pytest.mark.parametrize(
    ("document", "right", "wrong"),
    [
        # The first of two amounts has the scale and the unit of the last one.
        ("Der Gewinn sank von 74,2 auf 51,9 Mio. Euro.", "from €74.2 million to €51.9 million", "from €74.2"),
        ("It fell from 74.2 to 51.9 million euros.", "from 74.2 million euros", "from 73.2 million euros"),
        (
            "Profit fell from EUR 74.2 million to 51.9 million.",
            "from 74.2 to 51.9 million",
            "It rose to €74.2 million.",
        ),
        ("It fell from 1,200,000 to 0.9 million.", "from 1.2 million", "from 1.2 trillion"),
        ("Sales rose from 5 to 8 million euros.", "from €5 million", "from €5 billion"),
        # Signs.
        ("Farrow 31% (-8.9 points)", "It fell by 8.9 points.", "It rose by 8.9 points."),
        ("Lim 28% (+3.1 points)", "It rose by 3.1 points.", "It fell by 3.1 points."),
        ("The margin of error is ±2.2 points.", "plus or minus 2.2 points", "minus 2.2 points"),
        ("The margin is +/-2.2 points.", "The margin is ±2.2 points.", "The margin is -2.2 points."),
        ("The margin is plus or minus 2.2%.", "The margin is +/- 2.2%.", "The margin is ±3.2%."),
        # A spread has basis points or per cent; a rise by points is none by per cent.
        ("It pays LIBOR plus 175 basis points.", "LIBOR plus 1.75%", "LIBOR plus 17.5%"),
        ("It pays LIBOR plus 1.75%.", "LIBOR plus 175 basis points", "LIBOR plus 17.5 basis points"),
        ("It was 51% plus 2 percentage points.", "2 percentage points", "It was 2%."),
        ("The rate rose by 2 percentage points.", "It rose by 2 points.", "The rate rose by 2%."),
    ],
)
def test_signs_scales_and_units_that_two_numbers_share(document: str, right: str, wrong: str) -> None:
    assert [outcome([document], one) for one in (right, wrong)] == [Outcome.SUPPORTED, Outcome.REFUTED]


@pytest.mark.parametrize(
    ("document", "right", "wrong"),
    [
        # Ranks without a determiner.
        ("Birds of the Fens. Second edition. Oxford.", "It is the 2nd edition.", "It is the third edition."),
        ("BIRDS OF THE FENS. FIRST EDITION.", "It is the first edition.", "It is the second edition."),
        ("Second, revised edition of 2019.", "It is the second edition.", "It is the first edition."),
        ("First, the second edition sold out.", "It was the second edition.", "It was the first edition."),
        ("She married first Roland Hart and secondly Dr Lee.", "her second husband", "her third husband"),
        ("She first met Roland Hart in Paris.", "Roland Hart", "Roland Hart was her first husband."),
        # Pages.
        ("xxiv + 388 pp. Illustrated.", "It has 388 pages.", "It has 389 pages."),
        # What an amount is for.
        ("La cuota es de 20 euros mensuales.", "Son 20 euros al mes.", "Son 20 euros al año."),
        ("Redevance annuelle : 8 940 € HT.", "Cela coûte 8 940 € par an.", "Cela coûte 8 940 € HT par mois."),
        ("Der Beitrag beträgt 30 Euro monatlich.", "Es sind 30 Euro im Monat.", "Es sind 30 Euro im Jahr."),
        ("It is $40 per month, an answer says.", "It is $40 a month.", "It is $40 a year."),
        # Points, cents and magnitudes.
        ("Inflation fell by 2 pp.", "Inflation fell by 2 percentage points.", "It has 2 pages."),
        ("Adults €1.80, children 90c.", "A child pays €0.90.", "A child pays €90."),
        ("Adults €1.80, children 90c.", "A child pays 90 cents.", "A child pays 80 cents."),
        ("A ride costs 90c.", "A ride costs 90 cents.", "A ride costs 90 euros."),
        ("The dish is heated to 90c first.", "It is heated to 90 °C.", "It costs 90 cents."),
        ("The quake had a magnitude of 6.7.", "The magnitude-6.7 quake.", "The magnitude-7.6 quake."),
        # Times with seconds, and lengths that look like times.
        ("It struck at 02:14:08 UTC.", "It struck at 2:14 am UTC.", "It struck at 2:15 am UTC."),
        ("It struck at 02:14:48 UTC.", "It struck at 02:14 UTC.", "It struck at 2:14 pm UTC."),
        ("It boils in 4 min 15 s.", "It boils in 4:15.", "It boils in 4:25."),
        ("It boils in 4 min 15 s.", "It boils in 4:15.", "It opens at 4:15."),
        ("The match lasted 2h48.", "It took two hours and 48 minutes.", "It took two hours and 58 minutes."),
        ("The match lasted two hours and 48 minutes.", "It lasted 2:48.", "It began at 2:48."),
        ("The train leaves at 14h30.", "It leaves at 2.30 pm.", "It takes 14 hours and 30 minutes."),
        ("Buses run half-hourly.", "They run every 30 minutes.", "They run every 20 minutes."),
        ("Take three tablets a day, 6 hours apart.", "three tablets a day, 6 hours apart", "8 hours apart"),
    ],
)
def test_ranks_prices_pages_and_lengths_in_other_writings(document: str, right: str, wrong: str) -> None:
    assert [outcome([document], one) for one in (right, wrong)] == [Outcome.SUPPORTED, Outcome.REFUTED]


@pytest.mark.parametrize(
    ("document", "right", "wrong"),
    [
        ("This 4th day of September 2020", "It is dated 4 September 2020.", "It is dated 5 September 2020."),
        ("On the fourth day of September, 2020", "September 4, 2020", "September 14, 2020"),
        ("She took her MFA in 1995.", "She took it in '95.", "She took it in '96."),
        ("She took it with 95 others.", "with 95 others", "She took it in '95."),
        ("Es gilt seit dem 15.X.1582.", "It began on 15 October 1582.", "It began on 15 September 1582."),
        ("It began on 15 October 1582.", "15.X.1582", "15.IX.1582"),
        # Hedges, and money behind "de", of other languages.
        ("Es de 3.475.200,50 euros.", "unos 3,5 millones de euros", "casi 3,4 millones de euros"),
        ("Es de 3.475.200,50 euros.", "3,48 millones de euros", "3,48 millones de dólares"),
        ("Es sind 3.575.200,50 Euro.", "rund 3,6 Mio. Euro", "fast 3,5 Mio. Euro"),
        ("L'entreprise a 2 417 salariés.", "quelque 2 400 salariés", "quelque 2 700 salariés"),
        (
            "Le budget est de 3 475 200,50 euros.",
            "près de 3,5 millions d'euros",
            "près de 3,5 milliards d'euros",
        ),
        ("Coprirà poco meno della metà del debito.", "just under half of it", "just over half of it"),
        # Scores, shares, telephone numbers and books.
        ("It was 301 for 6, with 5 byes.", "It was 301/6.", "It was 301/5."),
        ("They stood at 301/6, with 5 byes.", "They stood at 301 for 6.", "They stood at 301 for 7."),
        ("It was 301 for 6 declared, in 9 hours.", "in 9 hours", "in 6 hours"),
        ("He paid 300 for 6 nights, 5 dinners.", "300 for 6 nights", "300 for 7 nights"),
        (
            "20% Syrah, 10% Mourvèdre",
            "a fifth Syrah and a tenth Mourvèdre",
            "a third of it is Syrah",
        ),
        (
            "Our line 08003317742 is free.",
            "The line 0800-331-7742 is free.",
            "The line 0800-331-7743 is free.",
        ),
        ("Our line 0800 331 7742 has 2 staff.", "08003317742 has 2 staff.", "08003317743 has 2 staff."),
        ("Appelez le 01 23 45 67 89, 2 lignes.", "2 lignes: 01.23.45.67.89", "2 lignes: 01.23.45.67.88"),
        ("Our line (02) 9374 4000 has 2 staff.", "02 9374 4000 has 2 staff.", "02 9374 4001 has 2 staff."),
        ("ISBN 3-16-148410-0, 9 plates", "9 plates, ISBN 3161484100", "9 plates, ISBN 3161484101"),
        ("It was 9,000 in 1970, 47,000 in 2018, and fell.", "It rose about fivefold, from 9,000", "It rose."),
    ],
)
def test_dates_hedges_scores_and_codes_in_other_writings(document: str, right: str, wrong: str) -> None:
    assert [outcome([document], one) for one in (right, wrong)] == [Outcome.SUPPORTED, Outcome.REFUTED]
