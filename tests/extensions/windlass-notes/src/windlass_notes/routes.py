"""Write a note, list one's own notes, have one shortened."""

from uuid import UUID

from pydantic import BaseModel

from windlass.core.errors import BadInput, NotFound
from windlass.extension.http import Caller, Has, RequestId, Scope, guard, router

router = router("notes")


class NewNote(BaseModel):
    text: str


class Note(BaseModel):
    id: int
    text: str


class Notes(BaseModel):
    items: list[Note]


class Begun(BaseModel):
    job_id: UUID


@router.post("/notes", operation_id="notes.write", status_code=201, response_model=Note)
@guard(Scope.JOBS_WRITE, operation="write")
async def write(wish: NewNote, caller: Caller, parts: Has) -> Note:
    """Keep a note."""
    if len(wish.text) > parts.setting("length_max"):
        raise BadInput(f"a note has {parts.setting('length_max')} characters at most")
    [row] = await parts.fetch("note_add", caller.caller_id, wish.text)
    parts.count("notes_written_total", how="http")
    return Note(**row)


@router.get("/notes", operation_id="notes.list", response_model=Notes)
@guard(Scope.JOBS_READ)
async def listed(caller: Caller, parts: Has) -> Notes:
    """The caller's notes."""
    return Notes(items=[Note(**row) for row in await parts.fetch("note_all", caller.caller_id)])


@router.post("/notes/{note}/shorten", operation_id="notes.shorten", status_code=202, response_model=Begun)
@guard(Scope.JOBS_WRITE, operation="write", by_depth=True)
async def shorten(note: int, caller: Caller, parts: Has, request_id: RequestId) -> Begun:
    """Have a note shortened by a job of the caller's."""
    if not any(row["id"] == note for row in await parts.fetch("note_all", caller.caller_id)):
        raise NotFound(f"there is no note {note}")
    job_id = await parts.submit(
        "shorten_note",
        {"note": note},
        caller=caller.caller_id,
        labels={"note": str(note)},
        correlation_id=request_id,
    )
    return Begun(job_id=job_id)
