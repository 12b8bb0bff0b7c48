"""Numbers in English words: "four hundred and sixty-six", "two and a half million", "a dozen", "third".

What is read (by the grammar of `cardinal`) is whole or not at all: "three four" is two numbers.

Words that are numbers only at times are marked `weak`, and the search drops them unless a unit, a bound
or a range shows that they count: "one" and "half" alone; "first" and "second" but where a
determiner comes before and a word behind ("the first step", not "at first" nor "the first time"). "half"
counts where it is one of an amount ("half the people", "half of them"). "a third" is a fraction unless a
noun follows ("a third of", "a third party"). "a couple", "several" and "dozens" are no numbers here: those
that stand as amounts are found by `amounts`.
"""

import re
from decimal import Decimal

from reward.claims.numbers import cardinal
from reward.claims.numbers.cardinal import ORDINALS, PARTS, Cardinal, Run, WordNumber, of_a_scale, scaled_by
from reward.claims.numbers.digits import fraction
from reward.claims.numbers.units import unit_at
from reward.claims.numbers.vocabulary import BEGIN, END, either

_BEGIN = cardinal.NUMBER_WORDS - {"quarter", *cardinal.PLURAL_PARTS, *cardinal.OF_SCALE}
FIRST_WORDS = frozenset(_BEGIN | {"quarter", "a", "an"})  # of `STARTS`
STARTS = (
    rf"{either(_BEGIN)}{END}|quarter(?=[ ]of[ ](?:an[ ]hour|a[ ]{either(cardinal.SCALES)}))"
    rf"|an?(?=[\x20\u00a0-]{either(cardinal.OF_SCALE | {*PARTS} - cardinal.PLURAL_PARTS)}{END})"
)
_DETERMINER = re.compile(
    rf"{BEGIN}(?:the|an?|its|his|her|their|our|my|your|this|that|every|each)[ \u00a0]$", re.IGNORECASE
)
_ADVERB = re.compile(
    rf"[ \u00a0](?:time|times|thing|things|and|of all|few|hand|glance|sight|or|half|place){END}",
    re.IGNORECASE,
)
RANKED = re.compile(
    rf"{BEGIN}(?:came|comes?|coming|finish(?:ed|es|ing)?|placed|ranked|ranks)[ \u00a0]$", re.IGNORECASE
)
_PLACED = re.compile(
    rf"{BEGIN}(?:in|into|to|reach(?:ed|es|ing)?|takes?|took|taking|claim(?:ed|s)|secur(?:ed|es)|held|holds)"
    r"[ \u00a0]$",
    re.IGNORECASE,
)
_WAS = re.compile(rf"{BEGIN}(?:was|were|is|are)[ \u00a0]$", re.IGNORECASE)
_WAS_THE = re.compile(rf"{BEGIN}(?:was|were|is|are)[ \u00a0]the[ \u00a0]$", re.IGNORECASE)
_ENDS = re.compile(r"[.;]|$")
_RANKS = re.compile(rf"[.,;]|$|[ \u00a0](?:on|in|behind|with){END}")  # "was second on 14.966"
_PLACE = re.compile(rf"[ \u00a0-](?:place|spot|position|prize){END}", re.IGNORECASE)
_SUPERLATIVE = re.compile(rf"[-\s](?:[^\W\d_]{{3,}}est|most|best|worst){END}")  # "second-largest"
_NO_RANK = re.compile(rf"[ \u00a0-](?:party|parties|world|person){END}", re.IGNORECASE)
_RANK = re.compile(
    r",|[ \u00a0](?!(?:of|the|and|or|in|to|that|as|more|less|ha(?:ve|s|d)|are|is|was|were|do|did|will|would"
    r"|can|could|lived?|worked?|said|say|fewer|cheaper|dearer|(?:high|low|larg|small|bigg|fast|slow|heavi|light|long"
    r"|short|thick|thinn|wid|tall)er)\b)[a-z]|-[a-z]",
    re.IGNORECASE,
)
_NOUN = re.compile(r"(?:[ \u00a0](?!of\b|the\b|and\b|or\b|in\b|to\b|that\b|as\b)|-)[a-z]", re.IGNORECASE)
_BY = re.compile(rf"{BEGIN}by[ ]$", re.IGNORECASE)
_MORE = re.compile(rf"[ ](?:more|less|fewer|larger|higher|lower|bigger|smaller|cheaper){END}")
_SHARE_BEFORE = re.compile(
    rf"{BEGIN}(?:up|for|represent(?:s|ed)?|constitute[sd]?|only|just|or|by|takes?|took)[ ]$", re.IGNORECASE
)  # "make up a quarter of spending"
_PAYS = re.compile(rf"{BEGIN}(?:pays?|paid|costs?)[ ]$", re.IGNORECASE)
_AFTER_QUARTERS = ("point", "points", "percentage", "percent", "mile", "inch", "hour", "century", "of")
# Before a half that is a part of a match, a year or a page.
_ONE_OF_TWO = re.compile(
    rf"{BEGIN}(?:first|second|third|other|latter|former|better|upper|lower|northern|southern|eastern|western"
    r"|top|bottom|front|opening|closing|final|inner|outer|the|this|each|either|every|his|her|its|their|one|'s"
    r"|(?:the|its|his|her|their)[ ](?:left|right|back|last|early|late|near|far))[ -]$",
    re.IGNORECASE,
)
_OF_AN_AMOUNT = re.compile(
    r"[ ](?:of[ ](?:the|all|its|their|them|those|these|us|his|her|our|my|your|it|what|that|this|[A-Z\d$€£]"
    r"|(?!loss|gain|profit|earning|result|sales?[ ](?:growth|decline)|game|match)[a-z]{3,}s\b"
    r"|people\b|women\b|men\b|children\b)"
    r"|(?:price|fare|pay)\b"
    r"|(?:the|its|their|his|her|our|my|your|as|that|those|these|this)[ ](?!battle|time[ ]the|way)\w)"
)


def words_at(text: str, at: int) -> WordNumber | None:
    """The number in words that begins at `at`, the longest that the grammar allows."""
    run = Run(text, at)
    first = run.word(0)
    if first == "half":
        return _half(run)
    if first == "quarter":
        quarter = fraction(1, 4)
        scaled = of_a_scale(run, 1, quarter, "quarter")
        if scaled or run.word(1) != "of" or run.word(2) not in ("a", "an"):
            return scaled
        return WordNumber(quarter, Decimal(0), run.end(3), weak=True, needs_unit=True)
    if first in ("a", "an"):
        return _with_article(run)
    if first in ORDINALS or first in cardinal.SCALE_ORDINALS:
        return _lone_ordinal(run)
    return Cardinal(run).read()


def _half(run: Run) -> WordNumber:
    """A half: "half a million", "half-dozen", "half an hour", "half of the people", or a lone "half"."""
    article = run.word(1) in ("a", "an")
    if scaled := scaled_by(run, 1 + article, Decimal("0.5"), "half"):
        return scaled
    if article and _BY.search(run.text, max(0, run.start - 4), run.start) and _is_of_a_thing(run, 1):
        return WordNumber(Decimal("0.5"), Decimal(0), run.end(1))  # "won by half a length"
    weak = article or not _is_share(run.text, run.start, run.end(1))
    return WordNumber(Decimal("0.5"), Decimal(0), run.end(1 + article), weak=weak, needs_unit=article)


def _is_of_a_thing(run: Run, at: int) -> bool:
    """Whether an article and a thing that is no unit follow, as in "by a quarter of a length"."""
    is_thing = run.word(at) in ("a", "an") and run.word(at + 1) not in _AFTER_QUARTERS
    return is_thing and unit_at(run.text, run.end(at + 1)) is None


def _is_share(text: str, start: int, end: int) -> bool:
    """Whether a half is one of an amount ("half the people", "by half"), not "the first half of May"."""
    before = text[max(0, start - 24) : start]
    if _BY.search(before):
        return _NOUN.match(text, end) is None
    if _PAYS.search(before) and _NOUN.match(text, end) is None:
        return True
    return not _ONE_OF_TWO.search(before) and _OF_AN_AMOUNT.match(text, end) is not None


def _with_article(run: Run) -> WordNumber | None:
    """One of something: "a hundred", "a dozen", "a third of", "a quarter of a million"."""
    text, part = run.text, run.word(1)
    if part in cardinal.OF_SCALE:
        run.counts_one()
        return Cardinal(run).read()
    if part not in PARTS:
        return None
    value, end = fraction(1, PARTS[part]), run.end(2)
    if scaled := of_a_scale(run, 2, value, part):
        return scaled
    by = text[max(0, run.start - 3) : run.start].lower() == "by "  # "fell by a third"
    if not by and part not in ("quarter", "half") and _RANK.match(text, end):
        return None
    needs_unit = run.word(2) == "of" and run.word(3) in ("a", "an") and unit_at(text, run.end(4)) is not None
    is_cut = by and (run.word(2) not in _AFTER_QUARTERS or _is_of_a_thing(run, 3))  # "fell by a quarter"
    is_of = part in ("quarter", "half") and _OF_AN_AMOUNT.match(text, end) is not None
    if part == "quarter":  # "a quarter more", "she pays a quarter"
        is_paid = _PAYS.search(text, max(0, run.start - 8), run.start) and _NOUN.match(text, end) is None
        is_of = is_of or bool(is_paid) or _MORE.match(text, end) is not None
        is_part = _SHARE_BEFORE.search(text, max(0, run.start - 16), run.start) is not None
        is_of = is_of or (run.word(2) == "of" and is_part)
    is_amount = is_of or (part == "quarter" and is_cut)
    weak = needs_unit or (part in ("half", "quarter") and not is_amount)
    return WordNumber(value, Decimal(0), run.end(4) if needs_unit else end, weak=weak, needs_unit=needs_unit)


def _lone_ordinal(run: Run) -> WordNumber | None:
    """A rank of one word; "first" and "second" may be other words (see above)."""
    text, word, end = run.text, run.word(0), run.end(1)
    if word in cardinal.SCALE_ORDINALS:
        return WordNumber(Decimal(10 ** cardinal.SCALE_ORDINALS[word]), Decimal(1), end, is_ordinal=True)
    if _NO_RANK.match(text, end):
        return None
    ranking = _PLACED if _PLACE.match(text, end) else RANKED
    is_rank = _SUPERLATIVE.match(text, end) or ranking.search(text, max(0, run.start - 12), run.start)
    is_noun = _NOUN.match(text, end) and not _ADVERB.match(text, end)
    is_one_of_several = is_noun and _DETERMINER.search(text, max(0, run.start - 6), run.start)
    was = _WAS.search(text, max(0, run.start - 6), run.start) if word == "second" else None
    was_the = _WAS_THE.search(text, max(0, run.start - 10), run.start)
    is_so_ranked = (was and _RANKS.match(text, end)) or (was_the and _ENDS.match(text, end))
    weak = word in ("first", "second") and not (is_rank or is_one_of_several or is_so_ranked)
    return WordNumber(Decimal(ORDINALS[word]), Decimal(1), end, is_ordinal=True, weak=weak)
