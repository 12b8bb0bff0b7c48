"""Numbers in text: where they stand, what they are worth, of what kind they are, and when two are the same.

`find_numbers` reads a text and `parse_number` one answer, by the `Conventions` that `conventions_of` a text
tells; both give `Number`s, whose values are exact `Decimal`s with all that belongs to them worked in: scale
words, fractions, units. `equal` compares them by kind, unit and value without tolerance; `supports` says
whether one found in a document supports one that is claimed, and `bound_stated` whether it states a bound.

The way from text to number, file by file; `model` says what a number is, `vocabulary.toml` holds the words:

    conventions   how the text writes "1.500" and "5/3/2021"
    plain         the text without marks inside of numbers, with the digits of every script as 0 to 9
    find          from left to right, what each place holds; `starts` says where a number can begin:
        names         "COVID-19", a telephone number, a version: digits that count nothing
        dates         "3 May 2021", "21. Dezember", "2021-22", "1990s"
        clock         "5:30 pm", "half past nine"
        measure       all other digits (`digits`), with sign, currency, percent sign or unit (`units`)
        words         "four hundred and six", "two thirds", "third"
        amounts       "twice", "tenfold", "the nineties", "a couple of thousand"
        roman         "Louis XIV", "World War II", "Chapter IX"
        eras          what these begin: "19th century", "late 1990s", "Q3 2018", "summer 2019"
    foreign       number words of six other languages
    compose       two that make one: ranges, ratios, "6 feet 2 inches"
    bounds        the words around it: "over 270", "5+", "about", and what it counts
    unread        numerals and amounts that have no sure value: "④⑥⑥", "several hundred"

And from number to verdict: `reading` (what a bare or open number is taken for), `equality`, `response` (which
numbers of an answer must be checked), `index`, `lookup`, `other_writings` and `scaled` (where documents hold
one), `things` (what a number is of), `listed` (small numbers that count what a text lists), `questions` (what
a question asks and gives away), `writing` (its one text), and `kind`, which gives the audit all of it.

The readers are rules of our own. Published parsers were measured: quantulum3, word2number, number-parser
and price-parser misread what audits live on (5k as kelvin, ranges as means, "-5" as 5), text2num leaves
"two and a half million" and "a dozen" half read in English. Libraries do what they are good at: pint converts
units, and text2num reads the number words of other languages.
"""

from reward.claims.numbers.equality import equal, supports
from reward.claims.numbers.find import find_numbers, parse_number
from reward.claims.numbers.model import Form, Kind, Number
from reward.claims.numbers.reading import read_as

__all__ = ["Form", "Kind", "Number", "equal", "find_numbers", "parse_number", "read_as", "supports"]
