"""The texts of a policy: several documents by name, read, compiled and tested together as a publish does it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from windlass.core.errors import BadPolicy
from windlass.policy.document import PolicyDocument
from windlass.policy.reader import POLICY_BYTES_MAX, read_policy
from windlass.policy.rules import Policy, compile_policy
from windlass.policy.testing import PolicyReport, run_tests

DOCUMENTS_MAX = 100
# Of all documents together. Every process keeps them compiled.
TEXTS_BYTES_MAX = 4 * POLICY_BYTES_MAX
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, slots=True)
class PolicyText:
    """One document as its author wrote it, and its name."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """The documents of a policy, in the order of their names, and the policy that they make."""

    texts: tuple[PolicyText, ...]
    documents: tuple[PolicyDocument, ...]
    policy: Policy

    @property
    def hash(self) -> str:
        """The hash of the meaning of all documents."""
        return self.policy.hash


def sorted_texts(documents: Mapping[str, str]) -> tuple[PolicyText, ...]:
    """Return documents in the order of their names. The order decides between rules that are equally strict."""
    return tuple(PolicyText(name, documents[name]) for name in sorted(documents))


def replaced(texts: Sequence[PolicyText], changes: Mapping[str, str]) -> tuple[PolicyText, ...]:
    """Return the documents with those of `changes` in place of their namesakes."""
    return sorted_texts({**{one.name: one.text for one in texts}, **changes})


def load_policy(texts: Sequence[PolicyText]) -> LoadedPolicy:
    """Read and compile documents. Raises BadPolicy that names the document."""
    _check(texts)
    documents = tuple(_read(one) for one in texts)
    policy = compile_policy(documents)
    if not policy.is_loaded:
        raise BadPolicy(
            "no document is of the tier global, so every job would be denied",
            remedy="Publish a document with `tier: global` too; `windlass policy example strict` prints one",
        )
    return LoadedPolicy(tuple(texts), documents, policy)


def tests_of(loaded: LoadedPolicy) -> dict[str, PolicyReport]:
    """Run the tests of each document while all are in force; return the reports by the documents' names."""
    pairs = list(zip(loaded.texts, loaded.documents, strict=True))
    return {
        text.name: run_tests(document, others=[other for _, other in pairs if other is not document])
        for text, document in pairs
    }


def _check(texts: Sequence[PolicyText]) -> None:
    if not texts:
        raise BadPolicy("there is no document", remedy="Name at least one file")
    if len(texts) > DOCUMENTS_MAX:
        raise BadPolicy(f"{len(texts)} documents; at most {DOCUMENTS_MAX} are allowed")
    for one in texts:
        if not _NAME.fullmatch(one.name):
            raise BadPolicy(
                f"{one.name[:100]!r} is not a document's name: letters, digits, _, dots and dashes, at most 100",
                remedy="Give another name with --name",
            )
        if "\x00" in one.text or any("\ud800" <= letter <= "\udfff" for letter in one.text):
            raise BadPolicy(
                f"{one.name}: the text cannot be stored: it holds a NUL character or half of a surrogate pair"
            )
    size = sum(len(one.text.encode()) for one in texts)
    if size > TEXTS_BYTES_MAX:
        raise BadPolicy(f"documents of {size:,} bytes; at most {TEXTS_BYTES_MAX:,} of all together are allowed")


def _read(one: PolicyText) -> PolicyDocument:
    try:
        return read_policy(one.text)
    except BadPolicy as error:
        error.message = f"{one.name}: {error.message}"
        raise
