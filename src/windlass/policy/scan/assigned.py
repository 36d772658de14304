"""Decides which values after a name are secrets: `api_key = "…"`, `"password": "…"`, `ACME_TOKEN=…`.

The pattern finds many pairs of a name and a value, and most are ordinary. A pair counts if the name is one of a secret
and the value looks random, or if the value has the shape that the named vendor issues.
"""

from __future__ import annotations

import re

from windlass.policy.scan.check import entropy, is_password, is_placeholder, looks_random
from windlass.policy.scan.finding import Found
from windlass.policy.scan.rule import AssignedRules, ScanRule

LENGTH_MIN = 10
_HEX = re.compile(r"[0-9a-fA-F]+")
_NAME_BEFORE = re.compile(rb"[0-9A-Za-z_.-]{0,40}\Z")
# The word stands at the end of a part of a name: `api_key`, `apiKey`, `KEY`, but neither `monkey` nor `keyboard`.
_KEY = re.compile(
    rb"(?:^|[^a-zA-Z]|[a-z](?=K))(?:[Kk]ey|KEY)(?![a-z])|(?:api|access|secret|private|auth|client)key", re.I
)
_SECRET = re.compile(
    rb"passw|pwd|passphrase|secret|token(?!i[sz])|credential|creds|(?<![a-z])auth(?!or)|[a-z]Auth(?!or)", re.IGNORECASE
)
_PASSWORD = re.compile(rb"passw|pwd|passphrase|secret", re.IGNORECASE)
_HARMLESS = re.compile(
    rb"public|publishable|(?:credentials?|secrets?)_?id|keyword|keyboard|key_?id|(?:sort|primary|foreign|cache|group|partition|row|dict|map|index|unique|schema|"
    rb"object|s3|idempotency|translation|i18n)[-_.]?key|key_?(?:name|type|path|file|size|len|error|vault|code|alias|usage)|"
    rb"token_?(?:type|name|url|uri|endpoint|count|id|len|kind|string)|secret_?(?:name|arn|id|ref|path)|"
    rb"auth_?(?:url|uri|type|method|endpoint|ority|entic)|csrf|next_?page|continuation|cursor|page_?token|fingerprint|"
    rb"checksum|hash|digest|integrity|sha\d|md5|etag|author|oauth_?(?:url|scope)|tokenizer|(?<![a-z])(?:compass|bypass)",
    re.IGNORECASE,
)


def assigned_found(rules: AssignedRules, data: bytes, start: int) -> Found | None:
    """Return what is found at a word of a name, or None."""
    match = rules.pattern.match(data, start)
    if match is None:
        return None
    first, end = match.span(2)
    if data[end : end + 1] in (b"(", b"["):
        # A call or an index: `token = make_token_for(user)`.
        return None
    # Signs at the end belong to the text around the value.
    value = match[2].rstrip(b".,:|&")
    before = _NAME_BEFORE.search(data, max(0, start - 40), start)
    name = (before[0] if before is not None else b"") + match[1]
    quote = data[first - 1 : first]
    begin = data[start : start + 3].lower() if _begins_word(data, start) else b""
    rule = _rule(rules, begin, name, value, quote in (b'"', b"'", b"`"))
    if rule is None:
        return None
    return Found(rule.scanner, rule.id, rule.type, first, first + len(value), rule.severity, rule.confidence)


def _rule(rules: AssignedRules, begin: bytes, name: bytes, value: bytes, is_quoted: bool) -> ScanRule | None:
    shapes = rules.shapes.get(begin)
    if shapes is not None and _is_vendor(rules, shapes, name, value):
        return rules.vendor
    if len(value) < 8 or _HARMLESS.search(name) or not (_SECRET.search(name) or _KEY.search(name)):
        return None
    text = value.decode("ascii", "replace")
    if len(text) >= LENGTH_MIN and _is_bare(text) and looks_random(text, rules.assigned.entropy):
        return rules.assigned
    return rules.assigned if is_quoted and _PASSWORD.search(name) and is_password(text) else None


def _begins_word(data: bytes, start: int) -> bool:
    """Return whether a word of a name begins here: `acme`, `my_acme`, `myAcme`, but not the end of `drachme`."""
    return not (data[start - 1 : start].isalpha() and data[start : start + 1].islower()) if start else True


def _is_vendor(
    rules: AssignedRules, shapes: tuple[tuple[bytes, re.Pattern[bytes]], ...], name: bytes, value: bytes
) -> bool:
    plain = name.lower().replace(b"-", b"").replace(b"_", b"")
    for word, shape in shapes:
        if word in plain and shape.fullmatch(value):
            text = value.decode("ascii", "replace")
            if _HEX.fullmatch(text) and not text.islower() and not text.isupper():
                return False
            is_mixed = any(map(str.isalpha, text)) or ":" in text
            return is_mixed and not is_placeholder(text) and entropy(text) >= rules.vendor.entropy
    return False


def _is_bare(value: str) -> bool:
    """Return whether a value is one text, and no path, address, host, version or expression."""
    if "://" in value or value.startswith(("/", "./", "../", "$", "%", "@", "http")) or value.count("/") > 3:
        return False
    if value.count(".") > 2 or (re.fullmatch(r"[\w-]+(?:\.[a-z]\w*)+", value) and not re.search(r"\d{3}", value)):
        return False
    return not re.fullmatch(r"[\d.:/+TZ_-]+", value) and not any(sign in value for sign in ("==", "&&", "||", "--"))
