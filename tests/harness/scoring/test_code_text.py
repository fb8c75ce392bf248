"""Which programs an answer may mean. Nothing is run here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.scoring.code_text import Block, code_blocks, entry_point, programs, with_call

CONTEXT = 'from typing import List\n\n\ndef helper(x):\n    return x\n\n\ndef add(a, b):\n    """ Add.\n    """\n'
HEAD = "from typing import List\n\n\ndef helper(x):\n    return x\n\n\n"


def first_that_compiles(text: str, context: str = CONTEXT, entry: str | None = "add") -> list[str] | None:
    """What the child process would run."""
    for units in programs(text, context, entry):
        try:
            for unit in units:
                compile(unit, "<program>", "exec")
        except SyntaxError:
            continue
        return units
    return None


def result_of(units: list[str]) -> object:
    """Only for programs written in this file."""
    names: dict[str, object] = {}
    for unit in units:
        exec(unit, names)
    return names["add"](2, 3)


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("no code", []),
        ("```python\na\n```", [Block(language="python", code="a\n")]),
        ("``` Python\r\na\r\n```\r\n", [Block(language="python", code="a\n")]),
        ("~~~\na\n~~~\n```\nb\n```", [Block(language="", code="a\n"), Block(language="", code="b\n")]),
        ("````md\n```\na\n```\n````", [Block(language="md", code="```\na\n```\n")]),
        ("1. so:\n   ```py\n   def f():\n       x\n   ```", [Block(language="py", code="def f():\n    x\n")]),
        ("```python\na\nb", [Block(language="python", code="a\nb\n")]),
        ("text\n```", []),
        ("use `a` or ```b``` here", []),
        ("```c++ title=x\na\n```", [Block(language="c++", code="a\n")]),
    ],
)
def test_blocks(text, blocks):
    assert code_blocks(text) == blocks


@pytest.mark.parametrize(
    ("context", "tests", "name"),
    [
        (CONTEXT, "def check(candidate):\n    assert candidate(1, 2) == 3\ncheck(add)", "add"),
        (CONTEXT, "def check(f): pass\ncheck(helper)", "helper"),
        (CONTEXT, "assert add(1, 2) == 3", "add"),
        ("async def go(x):\n    pass\n", "", "go"),
        ("class A:\n    def inner(self):\n        pass\n", "x = 1", None),
        ("", "", None),
    ],
)
def test_entry_point(context, tests, name):
    assert entry_point(context, tests) == name


def test_checks_that_are_never_called_are_called():
    tests = "def check(candidate):\n    assert candidate(1, 2) == 3\n\n\n"
    assert with_call(tests, "add") == f"{tests.rstrip()}\n\ncheck(add)\n"
    called = f"{tests}check(add)\n"
    assert with_call(called, "add") == called
    assert with_call("assert add(1, 2) == 3", "add") == "assert add(1, 2) == 3"
    assert with_call(tests, None) == tests


WHOLE = "def add(a, b):\n    return a + b\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"Sure:\n\n```python\n{WHOLE}```\nIt adds.", id="block"),
        pytest.param(
            f"```python\ndef add(a, b):\n    return 0\n```\nBetter:\n```python\n{WHOLE}```", id="last-definition"
        ),
        pytest.param(f"```python\n{WHOLE}```\nUse it:\n```python\nprint(add(1, 2))\n```", id="usage-after"),
        pytest.param(f"```bash\npip install x\n```\n```python\n{WHOLE}```", id="shell-before"),
        pytest.param(f"```python\n{WHOLE}", id="cut-before-the-fence"),
        pytest.param(WHOLE, id="bare"),
        pytest.param(f"Here is the function:\n\n{WHOLE}\nIt adds two numbers.", id="bare-in-prose"),
        pytest.param("```python\nadd = lambda a, b: a + b\n```", id="assignment"),
        pytest.param(
            "```python\ndef add(a: List, b) -> List:\n    return helper(a) + b\n```", id="needs-what-stood-before"
        ),
        pytest.param("```\n    return a + b\n```", id="body-block"),
        pytest.param("```python\nreturn a + b\n```", id="body-block-without-indentation"),
        pytest.param("```text\n    return a + b\n```", id="body-in-a-text-block"),
        pytest.param("    return a + b", id="body"),
        pytest.param("return a + b", id="stripped-body"),
        pytest.param("total = a\n    total += b\n    return total", id="stripped-first-line"),
        pytest.param("total = a\ntotal += b\nreturn total", id="dedented-body"),
        pytest.param("if a:\n        return a + b\n    return b", id="stripped-nested"),
        pytest.param(
            "    return a + b\n\n\ndef other():\n    pass\n\n\nif __name__ == '__main__':\n    print(1)", id="goes-on"
        ),
        pytest.param("return a + b\n\nThis returns the sum.", id="prose-behind"),
        pytest.param("    return a + b\n```\n\nThis returns the sum.", id="closes-the-prompts-block"),
        pytest.param("return a + b\r\n\r\nThis returns the sum.", id="crlf"),
    ],
)
def test_forms_of_an_answer(text):
    units = first_that_compiles(text)
    assert units is not None
    assert result_of(units) == 5


@pytest.mark.parametrize("text", ["", "  \n", "I cannot do that.", "```python\ndef add(a, b)\n    return a\n```"])
def test_what_is_no_code(text):
    units = first_that_compiles(text)
    assert units is None or result_of(units) != 5


def test_what_stands_before_the_function_is_kept_and_the_function_is_not():
    ((head, code),) = programs(f"```\n{WHOLE}```", CONTEXT, "add")
    assert (head, code) == (HEAD, WHOLE)


def test_indentation_is_kept_and_follows_the_context():
    tabs = 'def add(a, b):\n\t"""Add."""\n'
    assert programs("\treturn a + b", tabs, "add")[0] == [f"{tabs}\treturn a + b\n"]
    assert programs("return a + b", tabs, "add")[0] == [f"{tabs}\treturn a + b\n"]
    assert programs("    return a + b", "def add(a, b):", "add")[0] == ["def add(a, b):\n    return a + b\n"]


def test_without_a_context_the_code_stands_alone():
    assert programs("x = 1", "", None)[0] == ["", "x = 1"]
    assert programs("```\nx = 1\n```", "", None) == [["x = 1\n"]]


@given(st.text(alphabet="`~ \n\tdefadd(x):=return", max_size=80), st.sampled_from([CONTEXT, "", "def add("]))
def test_any_text_is_read_without_error(text, context):
    for units in programs(text, context, "add"):
        assert all(isinstance(unit, str) for unit in units)


@pytest.mark.parametrize("piece", ["```\n", "def add(\n", "x\n", " ", "```python\nx\n", "```" * 3])
def test_long_texts(piece):
    assert isinstance(programs(piece * 20_000, CONTEXT, "add"), list)
