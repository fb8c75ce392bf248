"""What `draftboard check` prints of a plan: counts in words that fit, names that can be told apart."""

import json

import pytest


@pytest.fixture
def check(cli, model, ask, tmp_path):
    def go(questions, labels=(), *more):
        methods = "".join(f"[[methods]]\nmethod = 'pld'\nlabel = {json.dumps(label)}\n" for label in labels)
        plan = tmp_path / "plan.toml"
        plan.write_text(f'model = "{model}"\nsuite = "jsonl@{ask(questions)}"\n{methods}')
        told = cli("check", plan, *more)
        assert told.code == 0, told.err
        return told.out.splitlines()

    return go


def test_labels_with_commas_can_be_told_apart(check):
    lines = check(
        [{"question_id": 1, "category": "a, b 2", "turns": ["the"]}], ["samd[x,y]", "pld", 'a", "b', "\x1b[1m"]
    )
    assert lines[0] == "plan is valid: 5 methods × 1 sample × 1 = 5 cells"
    assert lines[1] == '  jsonl: 1 sample, "a, b 2" 1'
    assert lines[2] == '  methods: autoregressive, "samd[x,y]", pld, "a\\", \\"b", \ufffd[1m'


def test_one_of_a_kind_is_no_plural(check):
    lines = check([{"question_id": 1, "turns": ["the ferry"]}])
    assert lines[:2] == ["plan is valid: 1 method × 1 sample × 1 = 1 cell", "  jsonl: 1 sample, default 1"]


def test_prompts_that_do_not_fit_are_named(check):
    long = [{"question_id": f"{number},{number}", "turns": ["the " * 200]} for number in range(7)]
    short = {"question_id": 8, "turns": ["the"]}
    assert check([*long, short])[-1].startswith('  7 prompts do not fit the window and will be skipped: "jsonl/0,0", ')
    assert check([*long, short])[-1].endswith('"jsonl/4,4", …')
    assert check([long[0], short])[-1] == '  1 prompt does not fit the window and will be skipped: "jsonl/0,0"'
