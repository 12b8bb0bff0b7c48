"""Which numbers of a response must be checked."""

import pytest

from reward.claims.numbers.response import response_numbers
from reward.types import Document, RagQuery


def written(response: str, query: RagQuery) -> list[str]:
    return [response[n.start : n.end] for n in response_numbers(response, query)]


QUERY = RagQuery(
    id="q",
    query="Summarise in 50 words what COVID-19 did.",
    documents=(Document(id="a", text="T2-weighted scans of COVID-19."), Document(id="b", text="See v1.2.3.")),
)


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("COVID-19, covid-19 and a T2 scan with v1.2.3", []),
        ("COVID-20 and T3 and v1.2.4 and x466", ["COVID-20", "T3", "v1.2.4", "x466"]),
        ("Passage 2 and documents 1 and 2 say so [1][2] [1, 2].", []),
        ("Passage 3 says so [4], and document 466 too.", ["3", "4", "466"]),
        ("Passage 2.5 million", ["2.5 million"]),
        ("By source 2 million came, passage 2 km long, reference 2%.", ["2 million", "2 km", "2%"]),
        ("It raised $[2] million, [1]% more, [2] km on.", ["2", "1", "2"]),
        ("See documents 1 and 2 million.", ["2 million"]),
        ("[1,2] [1-2] passages 1,2 say so. [1,466]", ["1,466"]),
        ("So it is.¹ Or not② (so²) ³", ["³"]),
        ("It drew ② people, (¹ of them) ill.", ["②", "¹"]),
        ("It raised € [2], EUR [1] and ($[2]).", ["2", "1", "2"]),
        ("⁴⁶⁷ euros, or ④⑥⑦, or 九百, or 2⁵", ["⁴⁶⁷", "④⑥⑦", "九百", "2", "⁵"]),
        ("② euros and ¹ million", ["②", "¹"]),
        ("n\u200dine h\u200cundred euros", ["n\u200dine h\u200cundred euros"]),
        ("① a b\n② c d\n④ e f", ["④"]),
        ("5 km² of m³ at R² and m s⁻¹", ["5 km²"]),
        ("一个统一的筹得九百欧元", ["九百"]),
        ("Covid\u201119 and CoViD-\uff11\uff19", []),
        ("In 50 words: it was 50 people.", ["50"]),
        ("In 60 words, it hurt.", ["60"]),
        ("Here is a summary in 60 words:\nIt hurt 70 people.", ["70"]),
        ("It hurt 60 people:\nmany.", ["60"]),
    ],
)
def test_what_must_be_checked(response: str, expected: list[str]) -> None:
    assert written(response, QUERY) == expected


def test_numbers_in_words_must_be_checked_by_setting() -> None:
    response = "Four hundred came, 12 left."
    assert [int(n.value) for n in response_numbers(response, QUERY)] == [400, 12]
    assert [int(n.value) for n in response_numbers(response, QUERY, words=False)] == [12]
