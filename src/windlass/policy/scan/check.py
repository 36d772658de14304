"""Checks of a match: check digits, structure, entropy, placeholders. A match that fails its check is no finding."""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping

from windlass.pure.key import parse_key

Check = Callable[[str], bool]

_PLACEHOLDER = re.compile(
    r"example|sample|dummy|placeholder|changeme|change[-_]?me|your[-_]|my[-_]?(?:secret|token|password|key)\b|redacted|"
    r"x{6,}|\*{3,}|\.{4,}|<[^>]*>|\$\{|\{\{|%\(|123456789|abcdefgh|todo|insert[-_]|lorem|foobar|not[-_]?a[-_]?real",
    re.IGNORECASE,
)
_RESERVED_DOMAIN = re.compile(
    r"@(?:[\w-]+\.)*(?:example\.(?:com|org|net|edu)|(?:[\w-]+\.)?(?:example|test|invalid|localhost|local))$",
    re.IGNORECASE,
)
_FILE_ENDING = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|css|js|py|html?|so|dll|txt|md)$", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-fA-F-]+")
_WORDS = re.compile(r"[A-Z]?[a-z]{3,}|[A-Z]{3,}")
_SIGNS = re.compile(r"[^0-9A-Za-z]+")
_RUNS = re.compile(r"[0-9]+|[A-Za-z]+")
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BR": 29, "BY": 28,
    "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DK": 18, "DO": 28, "EE": 20, "EG": 29, "ES": 24, "FI": 18,
    "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23, "GL": 18, "GR": 27, "GT": 28, "HR": 21, "HU": 28, "IE": 22,
    "IL": 23, "IQ": 23, "IS": 26, "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20,
    "LU": 20, "LV": 21, "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MR": 27, "MT": 31, "MU": 30, "NL": 18,
    "NO": 15, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22, "SA": 24, "SC": 31, "SE": 24,
    "SI": 19, "SK": 24, "SM": 27, "ST": 25, "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24,
    "XK": 20,
}  # fmt: skip


def entropy(text: str) -> float:
    """Return Shannon's entropy in bits for each character."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values()) if size else 0.0


def is_placeholder(text: str) -> bool:
    """Return whether a text stands for a secret in an example, and is none."""
    return _PLACEHOLDER.search(text) is not None


def looks_random(text: str, least: float) -> bool:
    """Return whether a value after a secret's name was made by a machine, and is no name, path or word."""
    if is_placeholder(text) or not any(map(str.isdigit, text)) or not any(map(str.isalpha, text)):
        return False
    if _HEX.fullmatch(text):
        # Sixteen digits have at most four bits.
        return len(text) >= 16 and entropy(text.lower()) >= min(least, 3.0)
    # The longest part without signs must be random by itself: `cache:630112` and `a.b.c` have none.
    part = max(_SIGNS.split(text), key=len)
    if len(part) < 10 or _changes(part) < (3 if len(part) < 20 else 4):
        return False
    if entropy(text) < least - (0.4 if len(text) < 20 else 0.0):
        return False
    # Names are made of words. A random text has few letters in a row that read like one.
    worded = sum(len(word) for word in _WORDS.findall(text) if len(word) >= 4)
    return worded <= len(text) * 0.5


def _changes(text: str) -> int:
    """Return how often letters and digits follow one another."""
    return len(_RUNS.findall(text)) - 1


def is_password(text: str) -> bool:
    """Return whether a short quoted text after a password's name looks like a password."""
    kinds = sum(any(map(test, text)) for test in (str.isdigit, str.islower, str.isupper))
    has_sign = not text.isalnum()
    return len(text) >= 8 and kinds + has_sign >= 3 and not is_placeholder(text) and entropy(text) >= 2.8


def _digits(text: str) -> list[int]:
    return [int(char) for char in text if "0" <= char <= "9"]


def luhn(text: str) -> bool:
    """Return whether the last digit is the check digit of Luhn."""
    digits = _digits(text)
    doubled = [digit * 2 - 9 if digit > 4 else digit * 2 for digit in digits[-2::-2]]
    return bool(digits) and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def card(text: str) -> bool:
    """Return whether a number is one of a payment card: an issuer's range, its length, Luhn, more than a few digits."""
    number = "".join(map(str, _digits(text)))
    if len(set(number)) < 2 or number[:12] in "0123456789012345678901234567890":
        return False
    two, four = int(number[:2]), int(number[:4])
    lengths: tuple[int, ...] = ()
    if number[0] == "4":
        lengths = (13, 16, 19)
    elif 51 <= two <= 55 or 2221 <= four <= 2720:
        lengths = (16,)
    elif two in (34, 37):
        lengths = (15,)
    elif two in (36, 38) or 300 <= int(number[:3]) <= 305:
        lengths = (14, 16)
    elif two in (60, 62, 64, 65) or 3528 <= four <= 3589:
        lengths = (16, 17, 18, 19)
    elif two in (50, 56, 57, 58, 63, 67):
        # Maestro has no separators between most of its groups in logs, and any length: only the common one counts.
        lengths = (16,)
    return len(number) in lengths and luhn(number)


def iban(text: str) -> bool:
    """Return whether a text is an IBAN: the length of its country, and 1 modulo 97."""
    plain = text.replace(" ", "").upper()
    if _IBAN_LENGTHS.get(plain[:2]) != len(plain):
        return False
    return int("".join(str(int(char, 36)) for char in plain[4:] + plain[:4])) % 97 == 1


def ssn(text: str) -> bool:
    """Return whether a social security number of the United States can have been issued."""
    number = "".join(map(str, _digits(text)))
    area, group, serial = number[:3], number[3:5], number[5:]
    if area in ("000", "666") or area >= "900" or group == "00" or serial == "0000":
        return False
    return number not in ("078051120", "219099999", "123456789") and len(set(number)) > 2


def phone(text: str) -> bool:
    """Return whether a number has the digits of a telephone number, and is not a run of equal digits."""
    digits = _digits(text)
    return 9 <= len(digits) <= 15 and len(set(digits)) >= 4


def email(text: str) -> bool:
    """Return whether an address can belong to a person: no reserved domain, no name of a file."""
    name, _, domain = text.partition("@")
    if name.lower() in ("git", "noreply", "no-reply", "postmaster") or name.startswith((".", "-")):
        return False
    return not _RESERVED_DOMAIN.search(text) and not _FILE_ENDING.search(domain)


def verhoeff(text: str) -> bool:
    """Return whether the last digit is the check digit of Verhoeff."""
    state = 0
    for at, digit in enumerate(reversed(_digits(text))):
        state = _VERHOEFF_D[state][_VERHOEFF_P[at % 8][digit]]
    return state == 0 and len(set(text)) > 3


_VERHOEFF_D = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 2, 3, 4, 0, 6, 7, 8, 9, 5), (2, 3, 4, 0, 1, 7, 8, 9, 5, 6),
    (3, 4, 0, 1, 2, 8, 9, 5, 6, 7), (4, 0, 1, 2, 3, 9, 5, 6, 7, 8), (5, 9, 8, 7, 6, 0, 4, 3, 2, 1),
    (6, 5, 9, 8, 7, 1, 0, 4, 3, 2), (7, 6, 5, 9, 8, 2, 1, 0, 4, 3), (8, 7, 6, 5, 9, 3, 2, 1, 0, 4),
    (9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
)  # fmt: skip
_VERHOEFF_P = (
    (0, 1, 2, 3, 4, 5, 6, 7, 8, 9), (1, 5, 7, 6, 2, 8, 3, 0, 9, 4), (5, 8, 0, 3, 7, 9, 6, 1, 4, 2),
    (8, 9, 1, 6, 0, 4, 3, 5, 2, 7), (9, 4, 5, 3, 1, 2, 6, 8, 7, 0), (4, 2, 8, 6, 5, 7, 3, 9, 0, 1),
    (2, 7, 9, 3, 8, 0, 6, 4, 1, 5), (7, 0, 4, 6, 9, 1, 3, 2, 5, 8),
)  # fmt: skip


def de_tax(text: str) -> bool:
    """Return whether a tax number of Germany has the right check digit (ISO 7064, MOD 11,10)."""
    digits = _digits(text)
    product = 10
    for digit in digits[:10]:
        total = (digit + product) % 10 or 10
        product = total * 2 % 11
    return digits[0] != 0 and (11 - product) % 10 == digits[10]


def fr_nir(text: str) -> bool:
    """Return whether a social security number of France has the right key."""
    plain = text.replace(" ", "").replace("2A", "19").replace("2B", "18")
    return plain.isdigit() and len(plain) == 15 and int(plain[13:]) == 97 - int(plain[:13]) % 97


def es_dni(text: str) -> bool:
    """Return whether an identity number of Spain has the right letter."""
    plain = text.replace("-", "").upper()
    number = plain[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return plain[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23]


def it_fiscal(text: str) -> bool:
    """Return whether a fiscal code of Italy has the right check letter."""
    odd = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)
    total = 0
    for at, char in enumerate(text[:15]):
        value = int(char) if char.isdigit() else ord(char) - 65
        total += value if at % 2 else odd[value]
    return text[15] == chr(65 + total % 26)


def br_cpf(text: str) -> bool:
    """Return whether a CPF of Brazil has the right check digits."""
    digits = _digits(text)
    if len(set(digits)) == 1:
        return False
    for size in (9, 10):
        total = sum(digit * (size + 1 - at) for at, digit in enumerate(digits[:size]))
        if total * 10 % 11 % 10 != digits[size]:
            return False
    return True


def jwt(text: str) -> bool:
    """Return whether the head of a token is JSON that names an algorithm."""
    head = text.partition(".")[0]
    try:
        value = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return False
    return isinstance(value, dict) and ("alg" in value or "typ" in value)


def url_password(text: str) -> bool:
    """Return whether a text in the place of a password is one, and no variable, mask or word for it."""
    plain = text.rpartition(":")[2]
    if plain.lower() in _PASSWORD_WORDS or is_placeholder(plain) or len(set(plain)) < 3:
        return False
    return not plain.startswith(("$", "%", "{", "<", "*", "["))


_PASSWORD_WORDS = frozenset(
    (
        "pass",
        "password",
        "passwd",
        "pwd",
        "pw",
        "secret",
        "token",
        "user",
        "admin",
        "root",
        "test",
        "postgres",
        "x-oauth-basic",
    )
)


def assigned(text: str) -> bool:
    """Return whether a value is no placeholder, and has more than letters."""
    return not is_placeholder(text) and len(set(text)) >= 5


def has_digit(text: str) -> bool:
    """Return whether a long token has a digit, as nearly every random one has and no name of a program."""
    return any(map(str.isdigit, text))


def credential(text: str) -> bool:
    """Return whether the value of an Authorization header is a credential, and no placeholder."""
    if len(set(text)) < 5 or is_placeholder(text):
        return False
    is_mixed = len(text) >= 16 and "." not in text and text.lower() != text and text.upper() != text
    return has_digit(text) or is_mixed


def name_and_password(text: str) -> bool:
    """Return whether a name and a password, parted by a colon, are real."""
    name, _, password = text.replace('"', "").replace("'", "").partition(":")
    if name.startswith(("<", "$")) or "{{" in text:
        return False
    password = password.strip("{}")
    if password:
        return url_password(password) and (len(password) >= 6 or has_digit(password))
    return len(name) >= 8 and has_digit(name) and not is_placeholder(name)


def windlass_key(text: str) -> bool:
    """Return whether a key of Windlass has the right checksum."""
    return parse_key(text) is not None


CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        card, iban, ssn, phone, email, verhoeff, de_tax, fr_nir, es_dni, it_fiscal, br_cpf, jwt, url_password, assigned,
        windlass_key,
        has_digit,
        credential,
        name_and_password,
    )
}  # fmt: skip
