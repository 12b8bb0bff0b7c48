"""Numbers that an answer could hide from the audit by writing them in words, and words that only look like
numbers.

The first table gives each number of a text as its span, kind and value; the second holds ordinary prose
without any. What has no definite value is found by `unread_numerals`, so that it is listed and never
overlooked.
"""

import pytest

from reward.claims.numbers import equal, find_numbers, parse_number
from reward.claims.numbers.response import response_numbers
from reward.claims.numbers.roman import NUMERALS, writings
from reward.claims.numbers.unread import unread_numerals
from reward.types import Document, RagQuery
from tests.test_number_time import cpu_s, grows_faster

Found = tuple[str, str, str]


def found_in(text: str) -> list[Found]:
    """Each number as its span, its kind, and its values with the unit or the identifier's name."""
    numbers = find_numbers(text)
    numbers = sorted([*numbers, *unread_numerals(text, numbers)], key=lambda number: number.start)
    return [
        (
            text[n.start : n.end],
            n.kind.value,
            n.unit
            if n.kind == "identifier"
            else " ".join([*(f"{float(v):.4g}" for v in n.values), n.unit]).strip(),
        )
        for n in numbers
    ]


FRACTIONS_AND_MULTIPLES: list[tuple[str, list[Found]]] = [
    ("Half of the people stayed.", [("Half", "count", "0.5")]),
    ("It closed half the shops.", [("half", "count", "0.5")]),
    ("They spent half the money, lost half of it.", [("half", "count", "0.5"), ("half", "count", "0.5")]),
    ("Prices fell by half.", [("half", "count", "0.5")]),
    ("Half as many came.", [("Half", "count", "0.5")]),
    ("Two-thirds of them voted.", [("Two-thirds", "count", "0.6667")]),
    ("It was cut by a third.", [("a third", "count", "0.3333")]),
    ("Three quarters of members left.", [("Three quarters", "count", "0.75")]),
    ("A quarter of the members left.", [("A quarter", "count", "0.25")]),
    ("Nine-tenths of it melted.", [("Nine-tenths", "count", "0.9")]),
    ("It costs twice the amount.", [("twice", "quantity", "2 times")]),
    ("He won the race twice.", [("twice", "quantity", "2 times")]),
    ("She won thrice.", [("thrice", "quantity", "3 times")]),
    ("Revenue doubled in May.", [("doubled", "quantity", "2 times")]),
    ("It tripled its output.", [("tripled", "quantity", "3 times")]),
    ("Sales more than quadrupled.", [("more than quadrupled", "quantity", "4 times")]),
    ("They want to double the price.", [("double", "quantity", "2 times")]),
    ("It is expected to triple by spring.", [("triple", "quantity", "3 times")]),
    ("It is double what they asked.", [("double", "quantity", "2 times")]),
    ("A doubling of output followed.", [("doubling", "quantity", "2 times")]),
    ("The price was halved.", [("halved", "quantity", "0.5 times")]),
    ("Three times as many came.", [("Three times", "quantity", "3 times")]),
    ("It grew threefold.", [("threefold", "quantity", "3 times")]),
    (
        "A three-fold rise and a 3-fold fall.",
        [("three-fold", "quantity", "3 times"), ("3-fold", "quantity", "3 times")],
    ),
    ("Output rose tenfold.", [("tenfold", "quantity", "10 times")]),
    ("It is 2x faster and 3.5x larger.", [("2x", "quantity", "2 times"), ("3.5x", "quantity", "3.5 times")]),
    ("one and a half times the size", [("one and a half times", "quantity", "1.5 times")]),
    ("a four-time champion", [("four-time", "quantity", "4 times")]),
    ("One in five agreed.", [("One in five", "ratio", "1 5")]),
    ("Nearly half of the seats were empty.", [("Nearly half", "count", "0.5")]),
]
HYPHENS_AND_AMOUNTS: list[tuple[str, list[Found]]] = [
    ("a twenty-five-year-old", [("twenty-five-year", "duration", "25 year")]),
    ("four-hundred-and-sixty-six guests", [("four-hundred-and-sixty-six", "count", "466")]),
    ("a two-and-a-half-hour film", [("two-and-a-half-hour", "duration", "2.5 hour")]),
    ("twentyfive guests", [("twentyfive", "count", "25")]),
    ("fourhundred guests", [("fourhundred", "count", "400")]),
    ("Hundred people came.", [("Hundred", "count", "100")]),
    ("Quarter of a million people came.", [("Quarter of a million", "count", "2.5e+05")]),
    ("a dozen and a half eggs", [("a dozen and a half", "count", "18")]),
    ("Dozen people came.", [("Dozen", "count", "12")]),
    ("a couple of thousand euros", [("a couple of thousand euros", "money", "2000 EUR")]),
    ("a couple hundred people", [("a couple hundred", "count", "200")]),
    ("some hundred people", [("some hundred", "count", "100")]),
    ("several thousand came", [("several thousand", "identifier", "several thousand")]),
    ("a few hundred people", [("a few hundred", "identifier", "a few hundred")]),
    ("tens of thousands of fans", [("tens of thousands", "identifier", "tens of thousands")]),
    ("millions of dollars", [("millions of dollars", "identifier", "millions of dollars")]),
    ("hundreds of kilometers away", [("hundreds of kilometers", "identifier", "hundreds of kilometers")]),
    ("many thousands", [("many thousands", "identifier", "many thousands")]),
]
ROMAN_AND_ERAS: list[tuple[str, list[Found]]] = [
    ("Louis XIV reigned.", [("Louis XIV", "identifier", "louis 14")]),
    ("Pope Pius X and Henry V", [("Pius X", "identifier", "pius 10"), ("Henry V", "identifier", "henry 5")]),
    ("Charles I of Spain", [("Charles I", "identifier", "charles 1")]),
    ("He read Chapter IX.", [("IX", "count", "9")]),
    ("type II diabetes, a phase III trial", [("II", "count", "2"), ("III", "count", "3")]),
    ("Super Bowl XVIII", [("XVIII", "count", "18")]),
    ("Part I of the book", [("I", "count", "1")]),
    ("World War II ended.", [("World War II", "identifier", "world war 2")]),
    ("the Second World War", [("Second World War", "identifier", "world war 2")]),
    ("a pre-WWII house", [("WWII", "identifier", "world war 2")]),
    ("LX euros", [("LX euros", "money", "60 EUR")]),
    ("LX people and CC guests", [("LX", "count", "60"), ("CC", "count", "200")]),
    ("XX people came", [("XX", "count", "20")]),
    (
        "lx people, xl euros, chapter ix",
        [("lx", "count", "60"), ("xl euros", "money", "40 EUR"), ("ix", "count", "9")],
    ),
    ("built in MCMXC", [("MCMXC", "identifier", "mcmxc")]),
    ("Resolution 2372 (XXII)", [("2372", "count", "2372"), ("XXII", "identifier", "xxii")]),
    (
        "the XIX century, the XIXth century",
        [("XIX century", "year", "1800 1899"), ("XIXth century", "year", "1800 1899")],
    ),
    ("the nineteenth century", [("nineteenth century", "year", "1800 1899")]),
    ("the 19th century", [("19th century", "year", "1800 1899")]),
    ("the 1800s", [("1800s", "year", "1800 1899")]),
    ("the nineties", [("nineties", "year", "1990 1999")]),
    ("the nineteen-sixties", [("nineteen-sixties", "year", "1960 1969")]),
    ("the eighteen hundreds", [("eighteen hundreds", "year", "1800 1899")]),
    ("a man in his early sixties", [("sixties", "count", "60 69")]),
]
LANGUAGES: list[tuple[str, list[Found]]] = [
    ("There were sechzig Leute.", [("sechzig", "count", "60")]),
    ("vierhundertsechsundsechzig Euro", [("vierhundertsechsundsechzig Euro", "money", "466 EUR")]),
    ("Es kamen elf Leute und die Stadt ist klein.", [("elf", "count", "11")]),
    ("sechzig Prozent der Leute", [("sechzig Prozent", "percent", "60 %")]),
    ("Der neunzehnte Tag war kalt und nass.", [("neunzehnte", "ordinal", "19")]),
    ("die Hälfte der Leute", [("Hälfte", "count", "0.5")]),
    ("drei Viertel der Leute", [("drei Viertel", "count", "0.75")]),
    ("Les deux tiers des gens sont venus.", [("deux tiers", "count", "0.6667")]),
    (
        "El libro fue de tres cuartos y una para los dos.",
        [("tres cuartos", "count", "0.75"), ("dos", "count", "2")],
    ),
    ("5,3 Milliarden Euro", [("5,3 Milliarden Euro", "money", "5.3e+09 EUR")]),
    ("It took zwei hours.", [("zwei hours", "duration", "2 hour")]),
    ("soixante-dix personnes", [("soixante-dix", "count", "70")]),
    ("soixante-six personnes", [("soixante-six", "count", "66")]),
    ("Les six chiens et dix chats sont dans la ville.", [("six", "count", "6"), ("dix", "count", "10")]),
    ("quatre-vingt-dix-sept", [("quatre-vingt-dix-sept", "count", "97")]),
    ("It raised veintiuno euros.", [("veintiuno euros", "money", "21 EUR")]),
    ("treinta y cinco mil personas", [("treinta y cinco mil", "count", "3.5e+04")]),
    ("3 millones de personas", [("3 millones", "count", "3e+06")]),
    ("quarenta e seis pessoas", [("quarenta e seis", "count", "46")]),
    ("dois milhões de pessoas", [("dois milhões", "count", "2e+06")]),
    ("ottantasei persone", [("ottantasei", "count", "86")]),
    ("duemila euro", [("duemila euro", "money", "2000 EUR")]),
    ("zesenzestig mensen", [("zesenzestig", "count", "66")]),
    ("vijfhonderd mensen", [("vijfhonderd", "count", "500")]),
]
NOTHING = [
    "The xi and the vi of it.", "Use vi to edit it.", "Mix it in a dim lid.", "An ill civil engineer did it.",
    # halves, thirds, quarters
    "The first half of the match was dull.", "She scored in the second half.",
    "The other half stayed at home.", "He is half asleep.", "The glass is half full.",
    "A half-hearted attempt.", "That is half the battle.", "They met halfway.", "Cut the avocado in half.",
    "His better half agreed.", "The top half of the page is blank.", "A third party signed it.",
    "The Third World Forum.", "The quarter was weak.", "He lives in the Latin Quarter.",
    "The quarterback threw.", "The northern half of the island is wet.", "It was time and a half-truth.",
    # multiples
    "A double room, please.", "He double-checked it.", "A double bass and a triple jump.",
    "She doubled over in pain.", "It doubled as a school.", "He doubled back.", "He doubled down on it.",
    "Once upon a time.", "They met once.", "Once or twice a year it snows.", "Think twice before you go.",
    "He hit a triple in the game.", "Double-digit growth.", "Serve with halved tomatoes.",
    "The purpose is twofold.", "At one time it was a mill.", "The New York Times wrote.",
    "At times it rains.", "Many times they failed.", "Multiple choices exist.", "He won the doubles.",
    "a one-time fee",
    # vague
    "Dozens of restaurants are near.", "Hundreds of people came.", "Thousands of fans cheered.",
    "A few days later.", "A couple of friends came.", "Several people left.", "Thousand island dressing.",
    "a couple in love",
    # capitals that are no numerals, or names
    "I think that I am right.", "The part I liked was short.", "He bought a CD.",
    "Dr. Smith, MD, of Washington, DC.", "Send your CV.", "The IV drip was changed.", "Start IV fluids.",
    "Add the mix and MIX it well.", "Vitamin C helps.", "Malcolm X spoke.", "Plan D failed.",
    "An X-ray was taken.", "The XL shirt and the XXL shirt.", "Section C is closed.", "I. Introduction",
    "II. Methods", "St. Thomas, VI.", "M. Night Shyamalan", "C. S. Lewis", "Paul I think is right.",
    "Did I dim the mild light? I did.", "An LCD screen, a DVD and an MC.", "Generation X grew up.",
    "Civic duty.",
    # words of other languages that English has, too
    "The elf had once a quince.", "The army will seize the dock.", "He paid a cent.",
    "The ménage à trois ended.", "She danced a pas de deux.", "Cinco de Mayo is a feast.",
    "Dos Equis is a beer.", "He moved to Baden-Baden.", "Los Angeles and Las Vegas.",
    "Dr. Otto Hahn of Berlin", "A venti latte.", "The rent is due.", "A mil is thin.",
    "Trois-Rivières lies in Quebec.", "The Vier Jahreszeiten hotel."
]  # fmt: skip
QUERY = RagQuery(
    id="q",
    query="What happened?",
    documents=(
        Document(id="d", text="Louis the Fourteenth; the Second World War; it cost several hundred euros."),
    ),
)


@pytest.mark.parametrize(
    ("text", "expected"), [*FRACTIONS_AND_MULTIPLES, *HYPHENS_AND_AMOUNTS, *ROMAN_AND_ERAS, *LANGUAGES]
)
def test_a_number_in_words_is_found_with_its_span_kind_and_value(text: str, expected: list[Found]) -> None:
    assert found_in(text) == expected


@pytest.mark.parametrize("text", NOTHING)
def test_ordinary_prose_holds_no_number(text: str) -> None:
    assert found_in(text) == []


@pytest.mark.parametrize(
    ("response", "left"),
    [
        ("Louis XIV lived before World War II.", []),
        ("It was in WWII.", []),
        ("Louis XV lived before World War I.", ["Louis XV", "World War I"]),
        ("It cost several hundred euros.", []),
        ("It cost several thousand euros.", ["several thousand"]),
        ("It cost twice the price of sechzig chairs.", ["twice", "sechzig"]),
        ("Half of the LX guests stayed.", ["Half", "LX"]),
    ],
)
def test_what_must_be_checked_is_listed_unless_the_documents_say_the_same_words(
    response: str, left: list[str]
) -> None:
    assert [response[n.start : n.end] for n in response_numbers(response, QUERY)] == left


@pytest.mark.parametrize(
    ("answer", "value"),
    [("XIV", 14), ("LX", 60), ("IV", 4), ("twice", 2), ("sechzig", 60), ("veintiuno", 21), ("half", 0.5)],
)
def test_an_answer_may_be_in_words_too(answer: str, value: float) -> None:
    number = parse_number(answer)
    assert number is not None
    assert float(number.value) == value


@pytest.mark.parametrize("answer", ["CD", "MIX", "IIII", "VX", "I", "tres", "once", "double"])
def test_words_are_no_answers(answer: str) -> None:
    assert parse_number(answer) is None


def test_roman_numerals_have_one_form() -> None:
    written = ("I", "IV", "IX", "XIV", "XL", "XC", "CD", "CM", "MCMXC", "MMXXVI")
    assert [NUMERALS[w] for w in written] == [1, 4, 9, 14, 40, 90, 400, 900, 1990, 2026]
    assert NUMERALS.keys().isdisjoint(("", "IIII", "VV", "IC", "XM", "MMMM", "A"))


def test_a_name_has_its_other_writings() -> None:
    assert "louis the fourteenth" in writings("louis 14")
    assert "henry 8" in writings("henry 8") and "henry viii" in writings("henry 8")
    assert {"second world war", "wwii", "world war two"} <= set(writings("world war 2"))
    assert writings("covid-19") == writings("several hundred") == ()


def test_words_are_skipped_where_words_do_not_count() -> None:
    text = "twice sechzig people, half the XII guests, several hundred euros, 5 cars"
    numbers = find_numbers(text, words=False)
    assert [n.value for n in numbers] == [5]
    assert unread_numerals(text, numbers, words=False) == []


def test_a_multiple_is_no_count() -> None:
    (twice,), (two,) = find_numbers("twice as many"), find_numbers("two cars")
    assert not equal(twice, two)


PIECES = (
    "twice ", "half the ", "sechzig ", "zwei und ", "soixante-", "quarante et ", "veinti", "treinta y ",
    "mil ", "I ", "XIV ", "XXXXX", "Louis XIV ", "King ", "Chapter ", "a couple of ", "hundred ",
    "several hundred ", "tens of ", "the nineties ", "nineteen-", "tenfold ", "vierhundert", "und ist ",
    "World War ", "M", "hundertzwei",
)  # fmt: skip


def test_row_07_reading_words_takes_time_that_grows_with_the_text() -> None:
    def read_all(text: str) -> object:
        return response_numbers(text, QUERY)

    suspects = [piece for piece in PIECES if grows_faster(read_all, piece, attempts=1)]
    assert [piece for piece in suspects if grows_faster(read_all, piece, attempts=4)] == []


def test_row_07_english_text_hardly_pays_for_other_languages() -> None:
    english = "The committee met in Oslo and said that it would look at the matter again in spring. " * 2_000
    foreign = (
        "Der Ausschuss kam und die sechzig Leute waren mit dem Plan nicht zufrieden, es war kalt. " * 2_000
    )
    assert min(cpu_s(find_numbers, english) for _ in range(3)) < min(
        cpu_s(find_numbers, foreign) for _ in range(3)
    )
