"""A class name means one thing in the whole package. The list of names that mean several may only shrink."""

from __future__ import annotations

import ast
from collections import Counter

from tests.tidy.sources import modules

# A name that two modules define. Rename one of them rather than add a line here.
REPEATED: frozenset[str] = frozenset(
    {
        "Accepted",
        "Again",
        "Answer",
        "App",
        "Ask",
        "Asked",
        "BudgetView",
        "BulkItem",
        "BulkRefusal",
        "Child",
        "Config",
        "Connection",
        "Cost",
        "CostView",
        "Counts",
        "Dead",
        "Demo",
        "Done",
        "Ended",
        "Event",
        "Fan",
        "Fault",
        "Faults",
        "Follows",
        "Frames",
        "Handler",
        "Health",
        "Hears",
        "Hidden",
        "Holder",
        "Job",
        "JobView",
        "KeyView",
        "Keys",
        "Kind",
        "Line",
        "Look",
        "Lost",
        "NotFound",
        "Outside",
        "Pace",
        "Page",
        "Parts",
        "Place",
        "Pool",
        "Prepared",
        "ProviderView",
        "Reason",
        "Said",
        "Sender",
        "Settings",
        "Stage",
        "Step",
        "StepDocument",
        "Sweep",
        "Taken",
        "Token",
        "Told",
        "Turns",
        "Verdict",
        "Wait",
        "Wish",
        "Work",
    }
)


def repeated() -> set[str]:
    """The names of top-level classes that several modules define; private ones and test suites do not count."""
    counts = Counter(
        node.name
        for module in modules("src")
        for node in module.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith(("_", "Test"))
    )
    return {name for name, count in counts.items() if count > 1}


def test_no_new_class_name_has_a_second_meaning() -> None:
    assert sorted(repeated() - REPEATED) == []


def test_the_list_shrinks_with_the_names() -> None:
    assert sorted(REPEATED - repeated()) == []
