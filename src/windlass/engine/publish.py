"""Publishes a policy, as a fence: once `publish` has returned, no process claims or admits by an older version.

    read the version in force ─► put the new documents in ─► compile ─► run the tests          no lock is held
        ▼
    one transaction: lock, exclusive ─► is it still the same version? ─► [policies, policy_now, audit note]
        ▼ bell PolicyPublished

A commit that judges jobs holds the lock shared. So the publish waits for those under way, and their jobs have an older
number in `jobs.policy`. Later commits wait for the publish, and then see its number: they are refused with WL002 and
judge again. A claim reads the floor under the same lock, and takes no job whose number is below it.

Two publishers at once: the second finds another version in force, and begins again with that one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import asyncpg
import msgspec

from windlass.core.bell import PolicyPublished
from windlass.core.errors import BadInput, BadPolicy, PolicyChanged, Unavailable
from windlass.engine import policies
from windlass.engine.policies import Aside, Now, PolicyHead, PolicyVersion, SignatureCheck, here
from windlass.policy.testing import PolicyReport
from windlass.policy.texts import LoadedPolicy, PolicyText, replaced, sorted_texts, tests_of
from windlass.pure.audit import AuditEvent
from windlass.store.database import Database
from windlass.store.statements import bound, sql

TRIES_MAX = 20
NOTE_MAX = 2_000
# Failed tests that an error names.
_NAMED_MAX = 5
# The schema of the first release that judges jobs: an older one would run them unjudged.
_JUDGING = (18, "0.3.0")


@dataclass(frozen=True, slots=True)
class Published:
    """The version in force after a publish. `is_new` is false if it meant the same already."""

    head: PolicyHead
    floor: int
    is_new: bool
    before: int


@dataclass(frozen=True, slots=True)
class _Wish:
    """What to publish, beside the documents."""

    by: str
    note: str | None
    new_only: bool
    signature: str | None
    rollback_of: int | None
    # More for the record of the audit: the key of the caller, the reason for untested documents.
    about: Mapping[str, Any]


async def publish(
    db: Database,
    documents: Mapping[str, str],
    *,
    by: str,
    note: str | None = None,
    is_whole: bool = False,
    new_only: bool = False,
    signature: str | None = None,
    untested: str | None = None,
    expected_no: int | None = None,
    check: SignatureCheck | None = None,
    aside: Aside = here,
    about: Mapping[str, Any] | None = None,
) -> Published:
    """Put documents in force, in place of those with the same names; with `is_whole` in place of all.

    Jobs that were submitted before are judged again, unless `new_only`. `untested` is the reason to publish although
    tests fail or are missing. With `expected_no` another version in force raises PolicyChanged. Documents that mean the
    same as those in force are no new version.
    """
    _check_texts(by, note, untested)
    for _ in range(TRIES_MAX):
        now, version = await _in_force(db)
        if expected_no is not None and now.no != expected_no:
            raise _changed(now.no, expected_no)
        texts = sorted_texts(documents) if is_whole or version is None else replaced(version.texts, documents)
        loaded = await policies.loaded(texts, aside)
        if untested is None:
            _check_reports(await aside(partial(tests_of, loaded)))
        if check is not None:
            check(loaded.hash, signature)
        told = {**(about or {}), **({} if untested is None else {"untested": untested})}
        wish = _Wish(by, note, new_only, signature, None, told)
        if (found := await _put(db, now, version, loaded, wish)) is not None:
            return found
    raise Unavailable("other policies were published at the same time", remedy="Try again")


async def rollback(
    db: Database,
    no: int,
    *,
    by: str,
    note: str | None = None,
    new_only: bool = False,
    check: SignatureCheck | None = None,
    aside: Aside = here,
    about: Mapping[str, Any] | None = None,
) -> Published:
    """Publish the content of an earlier version again, under a new number and with its signature.

    Its tests are not run: they were when it was published, and a rollback must not be refused in an emergency.
    """
    _check_texts(by, note)
    older = await policies.read(db, no)
    loaded = await policies.loaded(older.texts, aside)
    if check is not None:
        check(loaded.hash, older.head.signature)
    wish = _Wish(by, note, new_only, older.head.signature, no, about or {})
    for _ in range(TRIES_MAX):
        now, version = await _in_force(db)
        if (found := await _put(db, now, version, loaded, wish)) is not None:
            return found
    raise Unavailable("other policies were published at the same time", remedy="Try again")


async def _in_force(db: Database) -> tuple[Now, PolicyVersion | None]:
    now = await policies.read_now(db)
    return now, None if now.no == 0 else await policies.read(db, now.no)


async def _put(
    db: Database, now: Now, version: PolicyVersion | None, loaded: LoadedPolicy, wish: _Wish
) -> Published | None:
    """Write the version on top of the one in force; None if another one is in force by now."""
    if wish.new_only and now.no == 0:
        # Until now no job was judged. A process that has not heard of this publish goes on making such jobs, and only
        # the floor keeps them from being claimed.
        raise BadInput("the first policy concerns the open jobs too", remedy="Publish it without `--new-only`")
    if version is not None and _is_same(version.head, loaded, wish):
        return Published(version.head, now.floor, False, now.no)
    names = tuple(one.name for one in loaded.texts)
    no = now.no + 1

    async def operation(connection: asyncpg.Connection) -> Published | None:
        async with connection.transaction():
            await connection.execute(sql("policy_lock"))
            # A statement of its own, so that its snapshot is newer than the lock.
            found = await connection.fetchrow(sql("policy_now"))
            if found["no"] != now.no:
                return None
            at = await connection.fetchval(
                *bound(
                    "policy_put",
                    no=no,
                    hash=loaded.hash,
                    documents=_json(loaded.texts),
                    by=wish.by,
                    note=wish.note,
                    signature=wish.signature,
                    rollback_of=wish.rollback_of,
                )
            )
            floor = await connection.fetchval(sql("policy_put_now"), no, wish.new_only)
            await connection.execute(sql("installation_judges"), *_JUDGING)
            await connection.execute(sql("audit_note"), *_record(no, now.no, loaded, wish))
            connection.ring(PolicyPublished())
        head = PolicyHead(no, loaded.hash, names, wish.by, at, wish.note, wish.signature, wish.rollback_of)
        return Published(head, floor, True, now.no)

    return await db.run(operation)


def _is_same(head: PolicyHead, loaded: LoadedPolicy, wish: _Wish) -> bool:
    names = tuple(one.name for one in loaded.texts)
    # A signature that was added or renewed is stored: processes that check it may need it.
    is_signed_so = wish.signature is None or wish.signature == head.signature
    return head.hash == loaded.hash and head.names == names and is_signed_so


def _record(no: int, before: int, loaded: LoadedPolicy, wish: _Wish) -> tuple[str, str, str]:
    event = AuditEvent.POLICY_PUBLISHED if wish.rollback_of is None else AuditEvent.POLICY_ROLLED_BACK
    payload = {
        **wish.about,
        "policy": no,
        "before": before,
        "hash": loaded.hash,
        "documents": [one.name for one in loaded.texts],
        "new_only": wish.new_only,
        **({} if wish.note is None else {"note": wish.note}),
        **({} if wish.rollback_of is None else {"rollback_of": wish.rollback_of}),
    }
    return event, wish.by, msgspec.json.encode(payload, order="sorted").decode()


def _json(texts: tuple[PolicyText, ...]) -> str:
    return msgspec.json.encode(texts).decode()


def _check_texts(*texts: str | None) -> None:
    for text in texts:
        if text is None:
            continue
        if not text.strip() or len(text) > NOTE_MAX or "\x00" in text:
            raise BadInput(f"a note, a reason and a name have 1 to {NOTE_MAX:,} characters and no NUL")


def _check_reports(reports: Mapping[str, PolicyReport]) -> None:
    """Raise BadPolicy if a test fails, or if the tests of a document have a problem."""
    found = []
    for name, report in reports.items():
        found += [f"{name}: {one.name}: expected {one.expected}, found {one.found}" for one in report.failed]
        found += [f"{name}: {one.message}" for one in report.problems]
    if found:
        more = f"; and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
        raise BadPolicy(
            f"the tests of the policy fail: {'; '.join(found[:_NAMED_MAX])}{more}",
            remedy="`windlass policy test` shows all; `--untested REASON` publishes it nevertheless",
        )


def _changed(found: int, expected: int) -> PolicyChanged:
    return PolicyChanged(
        f"policy {found} is in force, not {expected}",
        remedy="`windlass policy diff` compares a file with the policy in force",
    )
