"""A recipe's inputs: builds their JSON Schema from type hints or a document, and validates a caller's values."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import jsonschema_rs
import msgspec

from windlass.core.errors import BadInput, BadRecipe, TooLarge
from windlass.core.expression import nearest
from windlass.core.plan import Plan
from windlass.recipe.json_value import json_fault

INPUT_BYTES_MAX = 1 << 20
ERRORS_SHOWN_MAX = 10
MESSAGE_SHOWN_MAX = 400

_WORDS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "boolean": {"type": "boolean"},
    "object": {"type": "object"},
    "array": {"type": "array"},
    "any": {},
}
_REF = "#/$defs/{name}"


def object_schema(properties: Mapping[str, dict[str, Any]], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a recipe's inputs: names without a default are required, and other names are refused."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    required = sorted(name for name, field in properties.items() if "default" not in field)
    if required:
        schema["required"] = required
    if definitions:
        schema["$defs"] = dict(definitions)
    return schema


def schema_from_hints(hints: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a function's parameters; a parameter without a hint accepts any value."""
    fields: dict[str, dict[str, Any]] = {}
    models = _Models()
    try:
        found, own = msgspec.json.schema_components(hints.values(), schema_hook=models.schema, ref_template=_REF)
    except (TypeError, ValueError, NotImplementedError):
        raise _bad_hint(hints) from None
    definitions = models.joined(own)
    for name, field in zip(hints, found, strict=True):
        fields[name] = dict(field)
        if name in defaults:
            try:
                fields[name]["default"] = msgspec.to_builtins(defaults[name], enc_hook=_dumped)
            except (TypeError, NotImplementedError) as error:
                raise BadRecipe(f"the default is not JSON: {error}", place=f"inputs.{name}") from None
    return object_schema(fields, definitions)


class _Models:
    """The JSON Schemas of Pydantic models, recognised by their methods: Pydantic need not be installed."""

    def __init__(self) -> None:
        self._definitions: dict[str, Any] = {}

    def schema(self, kind: type) -> dict[str, Any]:
        """Return a model's schema, and keep its definitions for the common `$defs` of the inputs."""
        describe = getattr(kind, "model_json_schema", None)
        if describe is None:
            raise NotImplementedError(f"type {kind.__qualname__} is not supported")
        found: dict[str, Any] = describe(ref_template=_REF.format(name="{model}"))
        self._keep(found.pop("$defs", {}))
        return found

    def joined(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """Return the definitions of all models, together with these."""
        self._keep(more)
        return dict(sorted(self._definitions.items()))

    def _keep(self, definitions: Mapping[str, Any]) -> None:
        for name, body in definitions.items():
            if self._definitions.setdefault(name, body) != body:
                raise BadRecipe(f"two types are called {name}", place="inputs", remedy="Rename one of them")


def _dumped(value: Any) -> Any:
    """Return a Pydantic model as JSON."""
    dump = getattr(value, "model_dump", None)
    if dump is None or isinstance(value, type):
        raise NotImplementedError(f"a value of type {type(value).__qualname__} is not JSON")
    return dump(mode="json", by_alias=True)


def schema_from_document(inputs: Any, place: str = "inputs") -> dict[str, Any]:
    """Return a document's schema: `name: type` with `?` and `[]`, schemas by name, or one whole schema."""
    if inputs is None:
        return object_schema({}, {})
    if not isinstance(inputs, dict):
        raise BadRecipe("inputs are a mapping of names to types", place=place)
    if isinstance(inputs.get("properties"), dict) or "$schema" in inputs:
        return {"type": "object", **inputs}
    return object_schema({name: _field(kind, f"{place}.{name}") for name, kind in inputs.items()}, {})


def _field(kind: Any, place: str) -> dict[str, Any]:
    if isinstance(kind, dict):
        return kind
    if not isinstance(kind, str):
        raise BadRecipe(f"{kind!r} is not a type", place=place, remedy="Write for example string, or a JSON Schema")
    if kind.endswith("?"):
        return {"anyOf": [_field(kind[:-1], place), {"type": "null"}], "default": None}
    if kind.endswith("[]"):
        return {"type": "array", "items": _field(kind[:-2], place)}
    if kind not in _WORDS:
        raise BadRecipe(f"{kind!r} is not a type", place=place, remedy=nearest(kind, _WORDS).capitalize())
    return dict(_WORDS[kind])


def check_schema(schema: dict[str, Any]) -> None:
    """Refuse an unusable schema: unknown types, patterns that need backtracking, external references."""
    fault = json_fault(schema, "inputs")
    if fault:
        raise BadRecipe(fault[1], place=fault[0])
    for name, field in schema.get("properties", {}).items():
        if not isinstance(field, dict | bool):
            raise BadRecipe(f"{field!r} is not a schema", place=f"inputs.{name}")
    validator = _compile(schema)
    for name, field in schema.get("properties", {}).items():
        if isinstance(field, dict) and "default" in field:
            wrong = [e for e in validator.iter_errors({name: field["default"]}) if e.instance_path[:1] == [name]]
            if wrong:
                raise BadRecipe(f"the default does not fit: {wrong[0].message}", place=f"inputs.{name}")


def input_names(schema: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the allowed names of inputs, or None if the schema allows other names too."""
    if schema.get("additionalProperties") is not False or "patternProperties" in schema:
        return None
    return frozenset(schema.get("properties", {}))


def required_names(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the names that a caller must give."""
    defaults = {
        n for n, field in schema.get("properties", {}).items() if isinstance(field, dict) and "default" in field
    }
    return frozenset(schema.get("required", ())) - defaults


def check_inputs(plan: Plan, inputs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the inputs with defaults filled in; raises `BadInput` with every fault, or `TooLarge`."""
    return check_inputs_text(plan, inputs)[0]


def check_inputs_text(plan: Plan, inputs: Mapping[str, Any] | None) -> tuple[dict[str, Any], str]:
    """Check inputs like `check_inputs`, and also return their JSON text, which measuring them needs anyway."""
    checker = _checkers.get(plan.hash)
    if checker is None:
        checker = _checkers[plan.hash] = _Checker(plan)
        if len(_checkers) > _CHECKERS_MAX:
            del _checkers[next(iter(_checkers))]
    return checker.check(inputs)


class _Checker:
    """The compiled schema of one plan."""

    __slots__ = ("defaults", "recipe", "validator")

    def __init__(self, plan: Plan) -> None:
        fields = plan.inputs_schema.get("properties", {})
        self.recipe = plan.recipe
        self.defaults = [(n, f["default"]) for n, f in fields.items() if isinstance(f, dict) and "default" in f]
        self.validator = _compile(plan.inputs_schema)

    def check(self, inputs: Mapping[str, Any] | None) -> tuple[dict[str, Any], str]:
        values = self._plain({} if inputs is None else inputs)
        for name, default in self.defaults:
            if name not in values:
                values[name] = default
        if not self.validator.is_valid(values):
            raise self._fault(values)
        text = msgspec.json.encode(values)
        if len(text) > INPUT_BYTES_MAX:
            raise TooLarge(
                f"inputs of {len(text):,} bytes; at most {INPUT_BYTES_MAX:,} are allowed",
                remedy="Put large data in a store that the steps can read, and pass its address",
            )
        # Decoded again, so that nothing is shared with the caller or the plan, and a tuple becomes a list.
        return msgspec.json.decode(text), text.decode()

    def _plain(self, inputs: Any) -> dict[str, Any]:
        if type(inputs) is not dict and not isinstance(inputs, Mapping):
            raise BadInput(f"inputs of {self.recipe} must be an object, not a {type(inputs).__name__}")
        values = dict(inputs)
        fault = json_fault(values, "inputs")
        if fault is None:
            return values
        try:
            # Python types beyond JSON (dataclasses, models, dates, enums) are converted, and the result is checked
            # again.
            plain: dict[str, Any] = msgspec.to_builtins(values, str_keys=True, enc_hook=_dumped)
        except (TypeError, ValueError, OverflowError, RecursionError, NotImplementedError):
            raise BadInput(f"{fault[0]}: {fault[1]}") from None
        if fault := json_fault(plain, "inputs"):
            raise BadInput(f"{fault[0]}: {fault[1]}")
        return plain

    def _fault(self, values: dict[str, Any]) -> BadInput:
        found = [(error.instance_path, _cut(error.message)) for error in self.validator.iter_errors(values)]
        told = "; ".join(f"{_path(path)}: {message}" for path, message in found[:ERRORS_SHOWN_MAX])
        more = f"; and {len(found) - ERRORS_SHOWN_MAX} more" if len(found) > ERRORS_SHOWN_MAX else ""
        return BadInput(
            f"the inputs do not fit recipe {self.recipe}: {told}{more}",
            errors=tuple((_pointer(path), message) for path, message in found[:ERRORS_SHOWN_MAX]),
        )


def _cut(message: str) -> str:
    """Shorten a message. It quotes the value, which may be large, and its end has the reason."""
    half = MESSAGE_SHOWN_MAX // 2
    return message if len(message) <= MESSAGE_SHOWN_MAX else f"{message[:half]} … {message[-half:]}"


# The number of compiled schemas that one process keeps.
_CHECKERS_MAX = 256
_checkers: dict[str, _Checker] = {}


def _path(path: list[str | int]) -> str:
    return "inputs" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)


def _pointer(path: list[str | int]) -> str:
    parts = ("inputs", *(str(part) for part in path))
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts)


def _compile(schema: dict[str, Any]) -> Any:
    return _compile_text(msgspec.json.encode(schema, order="deterministic"))


@lru_cache(maxsize=256)
def _compile_text(text: bytes) -> Any:
    try:
        return jsonschema_rs.validator_for(
            msgspec.json.decode(text),
            # A recipe's author supplies the schema, so it must not make the server open addresses or backtrack for
            # ever.
            offline=True,
            pattern_options=jsonschema_rs.RegexOptions(),
        )
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        reason = getattr(error, "message", str(error))
        place = _path(list(getattr(error, "instance_path", ())))
        raise BadRecipe(f"the schema cannot be used: {reason}", place=place) from None


def _bad_hint(hints: Mapping[str, Any]) -> BadRecipe:
    for name, hint in hints.items():
        try:
            msgspec.json.schema(hint, schema_hook=_Models().schema)
        except (TypeError, ValueError, NotImplementedError) as error:
            return BadRecipe(
                f"the type hint {hint!r} has no JSON Schema: {str(error).splitlines()[-1]}",
                place=f"inputs.{name}",
                remedy="Use JSON types, a dataclass, a TypedDict, a Pydantic model or a msgspec Struct; "
                "or leave the hint out to take anything",
            )
    return BadRecipe("the type hints have no JSON Schema together", place="inputs")
