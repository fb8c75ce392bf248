"""Result files written for a test, and how to read what came of them."""

import json
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"


def case(number):
    """The file of a numbered case."""
    (path,) = DATA.glob(f"{number}-*")
    return path


def write(tmp_path, content, name="rows.jsonl"):
    """Write rows as JSON lines, or a text as it is."""
    path = tmp_path / name
    if isinstance(content, list):
        content = "".join(json.dumps(row) + "\n" for row in content)
    path.write_text(content, encoding="utf-8")
    return path


def by_name(group):
    """The methods of a group by their labels."""
    return {method.method: method for method in group.methods}


def overall(group, method, metric):
    """An overall figure of a method."""
    return by_name(group)[method].overall[metric]
