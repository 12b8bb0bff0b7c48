"""Countries with their nationalities, states with their letters, organisations with theirs.

One word stands for all writings of one thing: "French" and "France" are both `france`. The tables hold common
cases only; what is not in them is compared as it is written.
"""

from __future__ import annotations

from reward.claims.names.tables import TABLES, groups

Phrases = dict[str, list[tuple[tuple[str, ...], str]]]
_TAKES_S = "anirkdte"  # last letters of nationalities whose plural has an s: "Germans", "Swedes"


def _nations() -> dict[str, str]:
    nations = {word: country for country, *others in groups("countries") for word in (country, *others)}
    plurals = {f"{word}s": country for word, country in nations.items() if word[-1] in _TAKES_S}
    return {**plurals, **nations}


NATIONS = _nations()  # "french" to "france"
COUNTRIES = frozenset(NATIONS.values())
STATES = {short: tuple(name) for short, *name in groups("states")}  # "ca" to ("california",)


def _phrases() -> Phrases:
    """The phrases that begin with a word, the longest first, each with the word that stands for it."""
    phrases: Phrases = {}
    for line in TABLES["phrases"].strip().splitlines():
        short, _, texts = line.partition(": ")
        for text in texts.split(", "):
            words = tuple(NATIONS.get(word, word) for word in text.split())
            phrases.setdefault(words[0], []).append((words, short))
    return {first: sorted(those, key=lambda phrase: -len(phrase[0])) for first, those in phrases.items()}


PHRASES = _phrases()
