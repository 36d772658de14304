"""The canonical form of a document: one text for every document with the same meaning, and its SHA-256.

Comments, the order of keys, synonyms of decisions and values equal to their defaults leave no trace in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec

from windlass.policy.document import InputRule, OutputRule, PolicyDocument, Rule


def canonical(value: Any) -> bytes:
    """Return the canonical JSON text of a document or of a part of it."""
    return msgspec.json.encode(plain(value), order="sorted")


def document_hash(document: PolicyDocument) -> str:
    """Return the SHA-256 of a document, in hexadecimal digits."""
    return _digest(canonical(document))


def rule_hash(rule: Rule | InputRule | OutputRule) -> str:
    """Return the SHA-256 of one rule. It changes with every change of the rule's meaning."""
    return _digest(canonical(rule))


def joined_hash(hashes: list[str]) -> str:
    """Return the hash of several documents; of one document, its own hash."""
    return hashes[0] if len(hashes) == 1 else _digest("\n".join(hashes).encode())


def plain(value: Any) -> Any:
    """Return a value as JSON. Fields that have their defaults are left out; sets become sorted lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: plain(found)
            for each in fields(value)
            if each.compare and (found := getattr(value, each.name)) != _default(each)
        }
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, frozenset):
        return sorted(plain(part) for part in value)
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, Decimal):
        return format(value.normalize(), "f")
    return value


def _default(each: Field[Any]) -> Any:
    return each.default_factory() if each.default_factory is not MISSING else each.default


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()
