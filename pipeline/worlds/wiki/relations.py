"""What is asked and said about a fact, in several wordings, so that a model learns to say it and no phrase.

A wording of an answer that begins with a subject keeps two facts in one sentence apart. `{s}` is the subject,
`{o}` the value. The first question of a relation is the one that a Proposer asks.
"""

import re
from dataclasses import dataclass

MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
FULL_DATE = rf"(?<!\w)(?:\d{{1,2}} {MONTH} \d{{4}}|{MONTH} \d{{1,2}}, \d{{4}})(?!\w)"


@dataclass(frozen=True)
class Relation:
    kind: str
    questions: tuple[str, ...]
    statements: tuple[str, ...]
    undated: tuple[str, ...] = ()  # in place of `statements` where a date has no day: "in 1909"
    reverse: str = ""  # asks for the subject, with {on} for "on" or "in"; of relations whose value is no name

    def wordings(self, value: str) -> tuple[str, ...]:
        return self.undated if self.undated and not re.fullmatch(FULL_DATE, value) else self.statements


RELATIONS = {
    "date of birth": Relation(
        "date",
        ("When was {s} born?", "What is the date of birth of {s}?"),
        ("{s} was born on {o}.", "The date of birth of {s} is {o}.", "{s}'s date of birth is {o}."),
        ("{s} was born in {o}.", "The birth of {s} was in {o}."),
        reverse="Who was born {on} {o}?",
    ),
    "date of death": Relation(
        "date",
        ("When did {s} die?", "What is the date of death of {s}?"),
        ("{s} died on {o}.", "The date of death of {s} is {o}.", "The death of {s} was on {o}."),
        ("{s} died in {o}.", "The death of {s} was in {o}."),
        reverse="Who died {on} {o}?",
    ),
    "publication date": Relation(
        "date",
        ("When was {s} released?", "When did {s} come out?"),
        ("{s} was released on {o}.", "{s} came out on {o}.", "The release of {s} was on {o}."),
        ("{s} was released in {o}.", "{s} came out in {o}."),
        reverse="What was released {on} {o}?",
    ),
    "year": Relation(
        "date",
        ("From which year is {s}?", "What year is {s} from?"),
        ("{s} is from {o}.", "{s} is from the year {o}.", "{s} dates from {o}."),
        reverse="What is from {o}?",
    ),
    "inception": Relation(
        "date",
        ("When was {s} founded?", "When was the founding of {s}?"),
        ("{s} was founded on {o}.", "The founding of {s} was on {o}."),
        ("{s} was founded in {o}.", "The founding of {s} was in {o}."),
        reverse="What was founded {on} {o}?",
    ),
    "population": Relation(
        "number",
        ("What was the population of {s}?", "How many people lived in {s}?"),
        ("The population of {s} was {o}.", "{s} had a population of {o}.", "In {s} lived {o} people."),
        reverse="Which place had a population of {o}?",
    ),
    "families": Relation(
        "number",
        ("How many families were there in {s}?", "How many families lived in {s}?"),
        ("There were {o} families in {s}.", "{s} had {o} families.", "In {s} lived {o} families."),
        reverse="Which place had {o} families?",
    ),
    "director": Relation(
        "name",
        ("Who directed {s}?", "Who was the director of {s}?"),
        ("{s} was directed by {o}.", "The director of {s} is {o}."),
    ),
    "composer": Relation(
        "name",
        ("Who composed the music of {s}?", "Who was the composer of {s}?"),
        ("The music of {s} was composed by {o}.", "The composer of {s} is {o}."),
    ),
    "performer": Relation(
        "name",
        ("Who performed {s}?", "Who was the performer of {s}?"),
        ("{s} was performed by {o}.", "The performer of {s} is {o}."),
    ),
    "place of birth": Relation(
        "name",
        ("Where was {s} born?", "What is the place of birth of {s}?"),
        ("{s} was born in {o}.", "The place of birth of {s} is {o}."),
    ),
    "place of death": Relation(
        "name",
        ("Where did {s} die?", "What is the place of death of {s}?"),
        ("{s} died in {o}.", "The place of death of {s} is {o}."),
    ),
    "nationality": Relation(
        "name",
        ("What was the nationality of {s}?", "Which nationality did {s} have?"),
        ("The nationality of {s} was {o}.", "{s}'s nationality was {o}."),
    ),
    "country": Relation(
        "name",
        ("Which country is {s} in?", "In which country is {s}?"),
        ("{s} is in {o}.", "The country of {s} is {o}."),
    ),
    "father": Relation(
        "name",
        ("Who was the father of {s}?", "What was the name of {s}'s father?"),
        ("The father of {s} was {o}.", "{s}'s father was {o}."),
    ),
    "mother": Relation(
        "name",
        ("Who was the mother of {s}?", "What was the name of {s}'s mother?"),
        ("The mother of {s} was {o}.", "{s}'s mother was {o}."),
    ),
    "spouse": Relation(
        "name",
        ("Who was married to {s}?", "Who was the spouse of {s}?"),
        ("{s} was married to {o}.", "The spouse of {s} was {o}."),
    ),
    "educated at": Relation(
        "name",
        ("Where was {s} educated?", "At which school did {s} study?"),
        ("{s} was educated at {o}.", "The school of {s} was {o}."),
    ),
    "founded by": Relation(
        "name",
        ("Who founded {s}?", "Who was the founder of {s}?"),
        ("{s} was founded by {o}.", "The founder of {s} is {o}."),
    ),
}
SYMMETRIC = ("spouse",)  # one fact about two subjects


def question_about(relation: str, subject: str, wording: int = 0) -> str:
    """A question for a fact; the wordings go round."""
    questions = RELATIONS[relation].questions
    return questions[wording % len(questions)].format(s=subject)


def statement_of(relation: str, subject: str, value: str, wording: int = 0) -> str:
    """A sentence that states a fact; the wordings go round."""
    wordings = RELATIONS[relation].wordings(value)
    return wordings[wording % len(wordings)].format(s=subject, o=value)


def question_for_subject(relation: str, value: str) -> str:
    """A question whose answer is the subject: "Who was born on July 10, 1883?"; empty if there is none."""
    on = "on" if re.fullmatch(FULL_DATE, value) else "in"
    return RELATIONS[relation].reverse.format(o=value, on=on)
