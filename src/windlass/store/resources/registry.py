"""The resources that the granter uses. A new resource needs a file in this folder and a line here."""

from __future__ import annotations

from windlass.store.resources.keys import Keys
from windlass.store.resources.money import Money
from windlass.store.resources.places import Places
from windlass.store.resources.port import Resource

# The granter asks the resources in this order. `back` may return names of later kinds. Money comes before keys: a step
# that cannot be paid lets the next step of its key pass.
RESOURCES: tuple[Resource, ...] = (Money(), Keys(), Places())

# A change of this kind names a line for the granter to check; other kinds name what steps left their lines for.
LINE = "provider"
KINDS = tuple(sorted(kind for resource in RESOURCES for kind in resource.kinds if kind != LINE))
