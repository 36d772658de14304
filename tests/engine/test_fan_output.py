"""A fan-out's output in pieces: any range of it is that range of the whole list."""

from __future__ import annotations

import msgspec
import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.errors import WrongState
from windlass.core.outcome import Success
from windlass.core.states import JobState
from windlass.views import fan_output
from windlass.views.fan_output import FanOutput
from windlass.views.job_graph import output_ref

FAN = plan(task("fan", each="inputs.items"))


async def _fanned(rig: Rig, outputs: list[str | None]) -> FanOutput:
    job = await rig.submit(FAN, {"items": list(range(len(outputs)))})
    await rig.loops.run_until_idle()
    with pytest.raises(WrongState) if outputs else _nothing():
        await output_ref(rig.db, rig.artifacts, job, 0)
    for one in await rig.claim():
        assert one.index is not None
        await rig.settle(one, Success(outputs[one.index]))
    assert await rig.state(job) is JobState.COMPLETED
    found = await output_ref(rig.db, rig.artifacts, job, 0)
    assert isinstance(found, FanOutput)
    return found


class _nothing:
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


async def test_every_range_is_a_part_of_the_list(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fan_output, "OUTPUTS_PAGE", 2)
    monkeypatch.setattr(fan_output, "SIZES_PAGE", 3)
    large = {"text": "x" * 30}
    ref = await rig.artifacts.put(msgspec.json.encode(large))
    name = msgspec.json.encode({"$artifact": {"sha256": ref.sha256, "size": ref.size}}).decode()
    found = await _fanned(rig, ["1", '"ä"', name, name, '{"a": [1, 2]}', '"$artifact"', "null"])
    whole = await found.part(0, found.size)
    assert len(whole) == found.size
    assert msgspec.json.decode(whole) == [1, "ä", large, large, {"a": [1, 2]}, "$artifact", None]
    for start in range(found.size):
        for length in (1, 2, 7, 40, found.size):
            assert await found.part(start, length) == whole[start : start + length]


async def test_a_fan_out_of_nothing_is_an_empty_list(rig: Rig) -> None:
    found = await _fanned(rig, [])
    assert (found.size, await found.part(0, 2), await found.part(1, 1)) == (2, b"[]", b"]")
