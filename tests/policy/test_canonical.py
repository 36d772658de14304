"""A document's hash follows its meaning, and a signature follows its hash."""

from __future__ import annotations

import base64

import pytest

from windlass.core.errors import BadSetting, BadSignature
from windlass.policy.canonical import document_hash, rule_hash
from windlass.policy.reader import read_policy
from windlass.policy.signing import public_key_of, sign_policy, verify_policy

TEXT = """
default_decision: deny
rules:
  - id: a
    match: {topics: [job.a, job.b], labels: {x: "1", y: "2"}}
    decision: permit
    when: caller.tier  ==  'gold'
"""
SAME = """
# A comment, another order, other words for the same.
rules:
  - {decision: allow, when: 'caller.tier == "gold"', id: a, at: [submit], mode: enforce,
     match: {labels: {y: "2", x: "1"}, topics: ["job.b", "job.a"]}}
tier: global
"""


def test_equal_meanings_have_equal_hashes() -> None:
    assert document_hash(read_policy(TEXT)) == document_hash(read_policy(SAME))
    assert len(document_hash(read_policy(TEXT))) == 64


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("job.b", "job.c"),
        ("permit", "deny"),
        ('"2"', '"3"'),
        ("gold", "silver"),
        ("id: a", "id: b"),
        ("deny\n", "allow\n"),
    ],
)
def test_another_meaning_has_another_hash(old: str, new: str) -> None:
    assert document_hash(read_policy(TEXT)) != document_hash(read_policy(TEXT.replace(old, new, 1)))


def test_the_order_of_rules_is_a_meaning() -> None:
    rules = ["{id: a, decision: deny}", "{id: b, decision: allow}"]
    one, two = (read_policy(f"rules: [{', '.join(order)}]") for order in (rules, rules[::-1]))
    assert document_hash(one) != document_hash(two)


def test_a_rules_hash_does_not_follow_other_rules() -> None:
    more = read_policy(TEXT + "  - {id: z, decision: deny}\n")
    assert rule_hash(read_policy(TEXT).rules[0]) == rule_hash(more.rules[0])
    changed = read_policy(TEXT.replace("job.b", "job.c"))
    assert rule_hash(read_policy(TEXT).rules[0]) != rule_hash(changed.rules[0])


PRIVATE = base64.b64encode(bytes(range(32))).decode()
OTHER = base64.b64encode(bytes(range(1, 33))).decode()


def test_a_signature_holds_for_its_hash_and_its_key_only() -> None:
    found = document_hash(read_policy(TEXT))
    signature = sign_policy(found, PRIVATE)
    verify_policy(found, signature, public_key_of(PRIVATE))
    verify_policy(document_hash(read_policy(SAME)), signature, public_key_of(PRIVATE))
    for policy, given, key in (
        (document_hash(read_policy("version: x")), signature, public_key_of(PRIVATE)),
        (found, signature, public_key_of(OTHER)),
        (found, "", public_key_of(PRIVATE)),
        (found, "é", public_key_of(PRIVATE)),
        (found, base64.b64encode(b"short").decode(), public_key_of(PRIVATE)),
    ):
        with pytest.raises(BadSignature):
            verify_policy(policy, given, key)


def test_a_bad_key_is_refused_without_being_repeated() -> None:
    for bad in ("secret!", base64.b64encode(b"secret").decode(), ""):
        with pytest.raises(BadSetting) as caught:
            sign_policy("0" * 64, bad)
        assert "secret" not in str(caught.value)
