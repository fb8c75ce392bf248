import sys

import pytest

from draftboard.errors import UserError
from draftboard.scoring import Answer, execution, sandbox, score

CONTEXT = 'from typing import List\n\n\ndef add(a: int, b: int) -> int:\n    """ Return the sum.\n    """\n'
TESTS = "METADATA = {}\n\n\ndef check(candidate):\n    assert candidate(2, 3) == 5\n    assert candidate(-1, 1) == 0\n"
NOT_RUN = "code is not run unless asked for: draftboard score RUN --run-code"


def answer(key: str, text: str | None, *tests: str, context: str = CONTEXT) -> Answer:
    return Answer(sample_id=key, turn=0, text=text, references=tests or (f"{TESTS}check(add)",), context=context)


def test_nothing_is_run_unless_asked_for(monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("a process was started")

    monkeypatch.setattr("subprocess.Popen", forbidden)
    monkeypatch.setattr(execution, "run_program", forbidden)
    scores = score([answer("a", "return a + b"), answer("b", None)], "pass_at_1")
    value = scores.values["pass_at_1"]
    assert (value.value, value.n, value.reason) == (None, 0, NOT_RUN)
    assert scores.per_sample["pass_at_1"] == {}
    assert (scores.counts["answers"], scores.counts["scored"], scores.counts["failed"]) == (2, 0, 1)
    assert scores.extras["mean_words"].value == 3


@pytest.mark.usefixtures("sandbox")
def test_pass_rate_outcomes_and_counts():
    answers = [
        answer("right", "```python\ndef add(a: int, b: int) -> List:\n    return a + b\n```"),
        answer("continued", "return a + b"),
        answer("uncalled", "return a + b", TESTS),
        answer("wrong", "return a - b"),
        answer("raises", "return undefined"),
        answer("leaves", "import sys; sys.exit(0)"),
        answer("prose", "I cannot do that."),
        answer("empty", ""),
        answer("failed", None),
        answer("no-tests", "return a + b", " "),
        answer("bad-tests", "return a + b", "def check(:"),
    ]
    scores = score(answers, "pass_at_1", run_code=True)
    passed = {"right", "continued", "uncalled"}
    scored = [a.sample_id for a in answers[:8]]
    assert scores.per_sample["pass_at_1"] == {f"{key}#0": float(key in passed) for key in scored}
    assert (scores.values["pass_at_1"].value, scores.values["pass_at_1"].n) == (3 / 8, 8)
    assert scores.counts == {
        "answers": 11, "scored": 8, "failed": 1, "no_reference": 1, "bad_reference": 1, "empty": 1,
        "code:passed": 3, "code:failed": 1, "code:error": 2, "code:syntax": 2,
    }  # fmt: skip
    version = ".".join(map(str, sys.version_info[:2]))
    assert scores.signature.startswith("isolation:namespaces|cpu:5s|")
    assert f"|python:{version}|packages:none|" in scores.signature
    assert scores.values["pass_at_1"].signature == scores.signature


@pytest.mark.usefixtures("sandbox")
def test_any_of_several_test_programs_will_do():
    scores = score(
        [answer("a", "return a + b", "def check(:", "assert add(1, 1) == 3", "assert add(1, 1) == 2")],
        "pass_at_1",
        run_code=True,
    )
    assert scores.values["pass_at_1"].value == 1


def test_a_run_that_holds_no_code_starts_nothing(monkeypatch):
    monkeypatch.setattr(execution, "require_sandbox", lambda run_code: pytest.fail("nothing to run"))
    scores = score([answer("a", None), answer("b", "x", " ")], "pass_at_1", run_code=True)
    assert scores.values["pass_at_1"].reason == "nothing to score: 1 failed, 1 without reference"


@pytest.mark.parametrize("platform", ["darwin", "win32"])
@pytest.mark.parametrize("run_code", [True, "unisolated"])
def test_other_systems_are_refused(monkeypatch, platform, run_code):
    monkeypatch.setattr(sandbox.sys, "platform", platform)
    with pytest.raises(UserError, match=f"code is run on Linux only, and this is {platform}"):
        score([answer("a", "return a + b")], "pass_at_1", run_code=run_code)
