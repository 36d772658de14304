"""Policies on the command line: checked, tested, explained and compared, without a database."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import APP, Cli

GOOD = """
default_decision: deny
rules:
  - {id: film, match: {topics: ["job.film"]}, decision: allow, constraints: {budgets: {max_retries: 1}}}
tests:
  - {request: {topic: job.film}, expect: {decision: allow_with_constraints, rule: film}}
  - {name: the rest, request: {topic: job.other}, expect: {decision: deny, rule: "windlass:default"}}
"""


@pytest.fixture
def policy(alone: Cli) -> Path:
    path = alone.folder / "policy.yaml"
    path.write_text(GOOD)
    return path


def test_a_policy_is_validated_and_its_hash_printed(alone: Cli, policy: Path) -> None:
    said = alone("policy", "validate", "policy.yaml").ok()
    assert "tier global: 1 rule, 0 input rules, 0 output rules, 2 tests; default deny" in said.out
    told = alone("policy", "validate", "policy.yaml", "--json").ok().json()
    assert f"hash {told['hash']}" in said.out
    assert (told["rules"], told["tests"], told["default_decision"]) == (1, 2, "deny")
    assert (
        alone(
            "policy",
            "validate",
            "-",
            stdin="# the same\n" + GOOD,
        )
        .ok()
        .out.splitlines()[1]
        == f"hash {told['hash']}"
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("match", "mach"), "rules[0].mach: there is no key `mach` here: did you mean match? (line 4)"),
        ("", "the policy is empty"),
        ("a: &a [*a]", "anchors and aliases"),
        ("rules: [{id: a, decision: deny, when: 'job.inputs.a.map(x, x)'}]", "`map` is refused in a condition"),
    ],
)
def test_a_mistake_is_told_with_its_file_and_line(alone: Cli, policy: Path, text: str, said: str) -> None:
    policy.write_text(text)
    for command in (("validate",), ("test", "--mutate"), ("diff", "policy.yaml")):
        found = alone("policy", command[0], "policy.yaml", *command[1:])
        assert found.code == 2, found
        assert said in found.err and "policy.yaml: " in found.err and "Traceback" not in found.err


def test_a_file_that_is_missing_or_huge_is_refused(alone: Cli, policy: Path) -> None:
    assert "cannot be read" in alone("policy", "validate", "nope.yaml").err
    policy.write_bytes(b"#" * (10 << 20))
    found = alone("policy", "validate", "policy.yaml")
    assert (found.code, "at most 2,097,152 are allowed" in found.err) == (2, True)


def test_good_tests_pass_and_every_change_is_noticed(alone: Cli, policy: Path) -> None:
    assert alone("policy", "test", "policy.yaml").ok().out == "policy.yaml: 2 tests passed, 0 failed\n"
    told = alone("policy", "test", "policy.yaml", "--mutate", "--json").ok().json()
    assert told == {
        "is_good": True,
        "passed": 2,
        "failed": [],
        "problems": [],
        "mutants": {"tried": 4, "unnoticed": []},
    }


def test_failures_and_problems_are_told_line_by_line(alone: Cli, policy: Path) -> None:
    policy.write_text(
        GOOD.replace("topic: job.other}, expect: {decision: deny", "topic: job.film}, expect: {decision: deny")
    )
    found = alone("policy", "test", "policy.yaml", "--mutate")
    assert found.code == 2
    assert (
        "FAIL (line 7) the rest: expected deny by windlass:default, found allow_with_constraints by film" in found.out
    )
    assert "unnoticed no test fails if windlass:default becomes allow" in found.out
    assert "1 tests passed, 1 failed" in found.out
    policy.write_text(
        GOOD + "  - {request: {topic: job.x}, expect: {decision: deny}}\n" + "output_rules: [{id: o, decision: deny}]"
    )
    found = alone("policy", "test", "policy.yaml")
    assert (found.code, "untested (line 9) rule o has no test" in found.out) == (2, True)


def test_topics_are_compared_with_the_recipes_of_an_app(alone: Cli, policy: Path) -> None:
    alone("policy", "test", "policy.yaml", "--recipes", APP).ok()
    policy.write_text(GOOD.replace("job.film", "job.flim"))
    found = alone("policy", "test", "policy.yaml", "--recipes", APP)
    assert (found.code, "no recipe has a topic like job.flim: did you mean job.film?" in found.out) == (2, True)


def test_a_verdict_is_explained_rule_by_rule(alone: Cli, policy: Path) -> None:
    (alone.folder / "request.json").write_text('{"topic": "job.other", "tenant": "acme"}')
    said = alone("policy", "explain", "policy.yaml", "request.json").ok()
    assert "global\tfilm\tfails\ttopics\t'job.other' is not matched by job.film" in said.out
    assert "verdict    deny\nrule       windlass:default\n" in said.out
    told = alone("policy", "explain", "policy.yaml", "-", "--json", stdin='{"recipe": "film"}').ok().json()
    assert told["decision"] == "allow_with_constraints"
    assert told["enforced"] == {"max_retries": "engine"}
    assert told["constraints"] == {"budgets": {"max_retries": 1}}
    assert [one["fate"] for one in told["documents"][0]["rules"]] == ["decides"]


def test_other_policies_may_be_in_force_too(alone: Cli, policy: Path) -> None:
    (alone.folder / "acme.yaml").write_text("tier: tenant\nselector: {tenant_id: acme}\ndefault_decision: deny")
    request = '{"recipe": "film", "tenant": "acme"}'
    said = alone("policy", "explain", "policy.yaml", "-", "--with", "acme.yaml", stdin=request).ok()
    assert "verdict    deny" in said.out
    other = alone("policy", "explain", "policy.yaml", "-", "--with", "acme.yaml", stdin='{"recipe": "film"}').ok()
    assert "tier tenant does not apply: its tenant_id is another" in other.err


@pytest.mark.parametrize("request_text", ["", "[]", '{"topc": "x"}', "{", '{"topic": 7}', '{"inputs": {"a": NaN}}'])
def test_a_bad_request_is_refused(alone: Cli, policy: Path, request_text: str) -> None:
    found = alone("policy", "explain", "policy.yaml", "-", stdin=request_text)
    assert found.code == 2 and "Traceback" not in found.err, found


def test_two_policies_are_compared(alone: Cli, policy: Path) -> None:
    (alone.folder / "new.yaml").write_text(GOOD.replace("default_decision: deny", "default_decision: allow"))
    said = alone("policy", "diff", "policy.yaml", "new.yaml").ok()
    assert "changed\tdefault_decision" in said.out
    assert "looser: the rest: deny → allow" in said.out
    told = alone("policy", "diff", "policy.yaml", "new.yaml", "--json").ok().json()
    assert told["verdicts"] == [
        {"name": "the rest", "topic": "job.other", "before": "deny", "after": "allow", "is_looser": True}
    ]
    same = alone("policy", "diff", "policy.yaml", "policy.yaml").ok()
    assert (same.out, same.err) == ("", "both mean the same\n")


def test_an_example_is_printed_and_passes_its_own_tests(alone: Cli) -> None:
    for name in ("starter", "strict"):
        text = alone("policy", "example", name).ok().out
        (alone.folder / "mine.yaml").write_text(text)
        alone("policy", "test", "mine.yaml", "--mutate").ok()
    assert alone("policy", "example").ok().out == text
    assert alone("policy", "example", "strit").code == 4


def test_a_server_is_refused(alone: Cli, policy: Path) -> None:
    assert alone("policy", "validate", "policy.yaml", "--server", "http://x").code == 2
