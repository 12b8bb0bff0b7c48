"""The audit without a model on counts, ranks and scores whose numbers documents hold of something else."""

import pytest

from tests.test_number_trends import refutes


@pytest.mark.parametrize(
    ("document", "right", "wrong"),
    [
        ("It came out in 1990, no. 3 in the series.", "It is no. 3.", "It is the third edition."),
        ("She was ranked no. 2.", "She was the second seed.", "It was the second edition."),
        ("Chapter VII, on caravans, is new.", "The seventh chapter is new.", "The seventh edition is new."),
        ("She beat second seed Ko 6-4, 3-6, 7-6.", "She beat the second seed.", "She beat the third seed."),
        ("Room 12 on floor 3.", "Floor three.", "There are three rooms."),
        ("She won 6-1, 6-2.", "She lost 2 games in set two.", "She has two titles."),
        ("She won 6-1, 6-2.", "She took six games.", "It was her second title."),
        ("He saved three match points and won 6-4.", "He won six games.", "He saved six match points."),
        ("Not for children under 12.", "Not for under 12s.", "Twelve children came."),
        (
            "All but three of the crew were saved; the second officer died.",
            "All but 3 were saved.",
            "All but two were.",
        ),
        ("Fare €2.30, child 90c.", "A child pays €0.90.", "A child pays €90."),
        ("She is Taiwan's first woman to climb it.", "The first woman did.", "The second woman did."),
        ("He is the first Dane to win it.", "The first Dane won it.", "The second Dane won it."),
        ("The Act of 1997 was the first.", "The Act was the first.", "The Act was the second."),
        ("One hundred years ago it began.", "It is its 100th anniversary.", "It is its 110th anniversary."),
        ("It is the 40th anniversary of the war.", "The war began 40 years ago.", "It began 30 years ago."),
        ("He sued her to get two cats.", "He is in a battle over two cats.", "He has over two cats."),
        (
            "The second-largest lake has 12 islands, three of which are inhabited.",
            "Three are inhabited.",
            "It is the third-largest lake.",
        ),
        ("It is limited to 10 users.", "It is for at most 10 users.", "It needs at least 10 users."),
        (
            "He sued his neighbour Nick for three acres.",
            "He has a dispute with Nick over three acres.",
            "His dispute with Nick is over five acres.",
        ),
    ],
)
def test_a_number_of_another_kind_says_no_count_and_no_rank(document: str, right: str, wrong: str) -> None:
    assert not refutes(document, right)
    assert refutes(document, wrong)


@pytest.mark.parametrize(
    ("document", "right", "wrong"),
    [
        ("A 2:2:1 ratio. Two died.", "They were randomised 2:2:1.", "They were randomised 1:2:2."),
        ("Merrick made 88 for 3. It was on day four.", "Merrick are 88-3.", "Merrick are 88-4."),
        (
            "Nueve votos contra seis. Cinco no votaron.",
            "It passed by 9 votes to 6.",
            "It passed by 9 votes to 5.",
        ),
        ("Home 3\nAway 1\nHalf time 2", "They won 3-1.", "They won 4-1."),
    ],
)
def test_a_score_has_its_two_sides_in_one_place(document: str, right: str, wrong: str) -> None:
    assert not refutes(document, right)
    assert refutes(document, wrong)
