"""The vocabulary of money: signs, ISO codes and names of currencies, before and behind their amount."""

from __future__ import annotations

import re
from decimal import Decimal

from reward.claims.numbers.digits import SPACE

# Sign of each currency that `canonical` writes in place of its code.
SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹"}

_BEFORE = {
    "$": "USD", "US$": "USD", "€": "EUR", "£": "GBP", "¥": "JPY", "₹": "INR", "Rs": "INR", "Rs.": "INR",
    "A$": "AUD", "AU$": "AUD", "C$": "CAD", "CA$": "CAD", "HK$": "HKD", "NZ$": "NZD", "S$": "SGD",
    "R$": "BRL", "BR$": "BRL", "NT$": "TWD", "MX$": "MXN", "$CA": "CAD", "UK£": "GBP", "¥CN": "CNY",
    "CN¥": "CNY", "JP¥": "JPY", "₩": "KRW", "₽": "RUB", "₺": "TRY", "₪": "ILS", "₫": "VND", "₱": "PHP",
    "₦": "NGN", "฿": "THB", "元": "CNY", "RMB": "CNY", "Fr.": "CHF",
}  # fmt: skip
_CODES = (
    "USD", "EUR", "GBP", "JPY", "INR", "CHF", "CNY", "AUD", "CAD", "HKD", "NZD", "SGD", "BRL", "TWD", "MXN",
    "KRW", "RUB", "TRY", "ILS", "VND", "PHP", "NGN", "THB", "SEK", "NOK", "DKK", "PLN", "CZK", "HUF", "ZAR",
    "IDR", "MYR", "AED", "SAR", "EGP", "PKR", "BDT", "UAH", "KES", "ARS", "CLP", "COP",
)  # fmt: skip
_NAMES = {
    "dollar": "USD", "us dollar": "USD", "u.s. dollar": "USD", "american dollar": "USD", "buck": "USD",
    "euro": "EUR", "british pound": "GBP", "pounds sterling": "GBP", "pound sterling": "GBP", "quid": "GBP",
    "yen": "JPY", "japanese yen": "JPY", "rupee": "INR", "indian rupee": "INR", "yuan": "CNY",
    "chinese yuan": "CNY", "renminbi": "CNY", "swiss franc": "CHF", "canadian dollar": "CAD",
    "australian dollar": "AUD", "hong kong dollar": "HKD", "new zealand dollar": "NZD",
    "singapore dollar": "SGD", "won": "KRW", "real": "BRL", "reais": "BRL", "ruble": "RUB", "rouble": "RUB",
    "peso": "MXN", "rand": "ZAR", "美元": "USD", "欧元": "EUR", "日元": "JPY", "元": "CNY", "人民币": "CNY",
    "円": "JPY", "원": "KRW", "英镑": "GBP", "$us": "USD", "$ us": "USD", "$ca": "CAD", "$ ca": "CAD",
    "$au": "AUD", "$ au": "AUD", "$nz": "NZD", "£gb": "GBP", "¥jp": "JPY", "¥cn": "CNY",
}  # fmt: skip
_HUNDREDTHS = {"cent": "USD", "¢": "USD", "pence": "GBP", "penny": "GBP", "paise": "INR"}

_ALL_BEFORE = _BEFORE | {code: code for code in _CODES}
_PLURALS = {name + "s": code for name, code in _NAMES.items() if name[-1].isascii() and name[-1] not in "s"}
_ALL_AFTER = {word.casefold(): code for word, code in (_ALL_BEFORE | _NAMES | _PLURALS).items()}
_PARTS = _HUNDREDTHS | {"cents": "USD"}


def _either(words: list[str]) -> str:
    return "|".join(re.escape(w).replace(r"\ ", SPACE) for w in sorted(words, key=len, reverse=True))


_BEFORE_PATTERN = rf"(?<![^\W\d_])(?:{_either(list(_ALL_BEFORE))})"
BEFORE = re.compile(
    rf"(?:(?P<currency>{_BEFORE_PATTERN}){SPACE}?)"
    rf"(?:(?P<inner>[-+\u2212]){SPACE}?)?\(?$"
)
_SYMBOLS = [w for w in [*_ALL_BEFORE, *_HUNDREDTHS] if not w[-1].isalnum() and not w.endswith(".")]
_IDEOGRAMS = [w for w in _NAMES if w[0] >= "\u3400"]
_WORDS = [
    w for w in [*_ALL_AFTER, *_PARTS] if w[-1].isascii() and w not in _SYMBOLS and w not in ("rs.", "fr.")
]
_AFTER = re.compile(
    rf"(?:{SPACE}?(?P<symbol>{_either(_SYMBOLS)})(?!{SPACE}?-?\d|{SPACE}?(?-i:US|CA|AU|NZ|GB|JP|CN)(?![^\W_]))"
    rf"|{SPACE}?(?P<ideogram>{_either(_IDEOGRAMS)})"
    rf"|(?:{SPACE}|-)?(?P<word>{_either(_WORDS)})(?![^\W_]|{SPACE}\d))",
    re.IGNORECASE,
)


# The first words of all currencies behind an amount, in small letters.
CURRENCY_WORDS = frozenset(
    match[0] for word in (*_ALL_AFTER, *_PARTS) if (match := re.match(r"[^\W\d_]+", word))
)


def currency_at(text: str, at: int) -> tuple[str, Decimal, int] | None:
    """The currency that is written behind an amount: its code, what one of it is worth, and where it ends."""
    match = _AFTER.match(text, at)
    if match is None:
        return None
    word = (match["symbol"] or match["ideogram"] or match["word"]).casefold()
    word = re.sub(SPACE, " ", word)
    if word in _PARTS:
        return _PARTS[word], Decimal("0.01"), match.end()
    return _ALL_AFTER[word], Decimal(1), match.end()


def is_currency(word: str) -> bool:
    """Whether a word is a code or an abbreviation that stands before an amount."""
    return word in _ALL_BEFORE


def currency_code(sign: str) -> str:
    """The ISO code of a sign, code or abbreviation that stands before an amount."""
    return _ALL_BEFORE[sign]
