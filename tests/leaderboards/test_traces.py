"""Trace pages: what they say of each step, and that nothing in a name or a text can act in them."""

import base64
import hashlib
import re
from dataclasses import replace

import pytest

from draftboard.errors import UserError
from draftboard.leaderboards.traces import TracedRun, render_traces
from draftboard.records import Cell, SampleRecord, TracedStep, TracedTurn, TraceRecord

from made_runs import turn

HOSTILE = (
    "</title><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7*7 }}",
    "\u202ereversed\u2069",
    "--></style></script>",
    "../../../etc/passwd",
    "x" * 300,
    "two\nlines",
)


def step(texts, path, kept, *, parents=None, special=None):
    count = len(texts)
    return TracedStep(
        tokens=list(range(count)),
        parents=parents or list(range(-1, count - 1)),
        texts=texts,
        path=path,
        kept=kept,
        draft_ns=12_000,
        verify_ns=21_400_000,
        other_ns=300_000,
        special=special or {},
    )


CHAIN = TracedTurn(
    prompt="user: hi\nassistant:",
    pieces=["A", " b", " c", " d", "!", ""],
    special={5: "<|im_end|>"},
    steps=[
        step(["A", " b", " c", " wrong", " tail"], [0, 1, 2], 3),
        step([" d", "!", "", " never"], [0, 1, 2, 3], 2, special={2: "<|im_end|>"}),
    ],
)
TREE = TracedTurn(
    prompt=CHAIN.prompt,
    pieces=["A", " b", " c"],
    steps=[step(["A", " x", " b", " y", " z", " q"], [0, 2], 2, parents=[-1, 0, 0, 1, 1, 2])],
)


def run(turns, *, name="s", domain="qa", status="ok", reason="", samples=1, title="tiny · run", unsplit=""):
    records, cells, traces = [], [], []
    for number in range(samples):
        key = f"{name}/{name}-{number}" if samples > 1 else f"{name}/{name}"
        sample_id = key.partition("/")[2] if samples > 1 else name
        records.append(
            SampleRecord(
                key=key, suite=name, sample_id=sample_id, domain=domain, category=name, turns=[name] * len(turns)
            )
        )
        cells.append(Cell(method=name, sample=key, turns=[turn() for _ in turns]))
        traces.append(TraceRecord(method=name, sample=key, turns=list(turns)))
        cells.append(Cell(method="other", sample=key, status=status, reason=reason))
    return TracedRun(title=title, methods=(name, "other"), samples=records, cells=cells, traces=traces, unsplit=unsplit)


def rendered(tmp_path, *runs, limit=200):
    written = render_traces(runs, tmp_path / "site", limit=limit)
    return [path.read_text(encoding="utf-8") for path in written.paths]


def text_of(markup):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", markup)).strip()


def answer(page):
    return page[page.index('class="answer') : page.index("</div>", page.index('class="answer'))]


def steps(page):
    return [text_of(part) for part in re.findall(r"<li><span class=\"line\">(.*?)</li>", page, re.DOTALL)]


def test_every_token_is_marked_by_how_it_came(tmp_path):
    page = rendered(tmp_path, run([CHAIN]))[1]
    without = re.sub(r'<span class="pop".*?</span></span>(?=<span class="s"|\s*$)', "", answer(page), flags=re.DOTALL)
    tokens = re.findall(r'class="t ([a-z ]+)">(.*?)</span>', without)
    assert tokens[:4] == [("first", "A"), ("accepted", " b"), ("accepted", " c"), ("bonus", " d")]
    assert ("accepted special", "&lt;|im_end|&gt;") in tokens


def test_steps_tell_what_was_drafted_rejected_and_cut(tmp_path):
    page = rendered(tmp_path, run([CHAIN]))[1]
    first, second, third = steps(page)
    assert first == "AStep 0 read the prompt"
    assert second == (
        "b c dStep 1 drafted 4, accepted 2, bonus 1 draft 0.012 ms, verify 21.4 ms, other 0.300 ms "
        "rejected after 2 accepted wrong tail"
    )
    assert third.startswith("!&lt;|im_end|&gt;Step 2 drafted 3, accepted 3, no bonus: the answer ended before it")
    assert third.endswith("accepted behind the end never")
    assert "6 tokens in 2 steps, 2.50 kept a step, 5 of 7 drafted tokens accepted" in page


def test_the_branches_of_a_tree_are_told_by_where_they_leave(tmp_path):
    page = rendered(tmp_path, run([TREE]))[1]
    told = steps(page)[1]
    assert told.endswith("rejected x y rejected x z rejected after 1 accepted q")


def test_a_wide_draft_is_told_in_part(tmp_path):
    texts = ["A", *(f" {n}" for n in range(100))]
    wide = TracedTurn(prompt="p", pieces=["A", "b"], steps=[step(texts, [0], 1, parents=[-1, *[0] * 100])])
    page = rendered(tmp_path, run([wide]))[1]
    assert steps(page)[1].count("rejected") == 33
    assert "and 68 more rejected" in page
    long = replace(wide, steps=[step(texts, [0], 1)])
    assert "and 68 more rejected" in rendered(tmp_path, run([long]))[1]


def test_times_that_are_not_split_are_told_as_one_with_the_reason(tmp_path):
    page = rendered(tmp_path, run([CHAIN], unsplit="not synchronised"))[1]
    assert "not split: <bdi>not synchronised</bdi>" in page
    assert "verify" not in steps(page)[1]
    assert "21.7 ms" in steps(page)[1]


def test_a_cell_without_a_trace_says_why(tmp_path):
    page = rendered(tmp_path, run([CHAIN], status="failed", reason="ValueError: no"))[1]
    assert "Failed: ValueError: no. There is no trace of it." in page
    page = rendered(tmp_path, run([CHAIN], status="skipped", reason="too long"))[1]
    assert "Skipped: too long. There is no trace of it." in page
    lacking = run([CHAIN])
    page = rendered(tmp_path, replace(lacking, traces=[]))[1]
    assert "No trace of this answer was stored." in page
    page = rendered(tmp_path, replace(lacking, methods=("s", "never")))[1]
    assert "This sample was not run with this method." in page


def test_an_answer_by_likelihood_is_told(tmp_path):
    chosen = TracedTurn(prompt="p", pieces=[], prefill_emits=0)
    assert "the answer was chosen by likelihood: x" in rendered(tmp_path, run([chosen]))[1]


def test_turns_stand_below_each_other_and_another_prompt_is_shown(tmp_path):
    traced = run([CHAIN, replace(TREE, prompt="first's")])
    other = TraceRecord(method="other", sample="s/s", turns=[CHAIN, replace(TREE, prompt="its\n<own>")])
    cells = [*traced.cells[:1], Cell(method="other", sample="s/s", turns=[turn(), turn()])]
    page = rendered(tmp_path, replace(traced, cells=cells, traces=[*traced.traces, other]))[1]
    assert "Turn 2: " in page
    assert "its\n&lt;own&gt;</pre>" in page
    assert page.count("Prompt of this method") == 1


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_and_texts_add_no_tag_and_name_no_file(page, tmp_path, name):
    def made(text):
        turns = [
            TracedTurn(
                prompt=text,
                pieces=[text, text],
                special={0: text},
                steps=[step([text, text, text], [0], 1, special={2: text})],
            )
        ]
        return run(turns, name=text, domain=text, title=text, status="failed", reason=text, unsplit=text)

    plain = [page(text) for text in rendered(tmp_path / "plain", made("plain"))]
    hostile = [page(text) for text in rendered(tmp_path / "hostile", made(name))]
    for one, other in zip(plain, hostile, strict=True):
        # Signs for what cannot be seen are markup of ours.
        assert [tag for tag in other.tags if tag != "i"] == [tag for tag in one.tags if tag != "i"]
        assert [sorted(a) for t, a in other.attributes if t != "i"] == [
            sorted(a) for t, a in one.attributes if t != "i"
        ]
    names = {path.name for path in (tmp_path / "hostile" / "site" / "traces").iterdir()}
    assert names == {"index.html", "1-1.html"}


def test_pages_admit_their_own_script_and_style_and_nothing_else(tmp_path):
    for page in rendered(tmp_path, run([CHAIN])):
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
        assert "unsafe" not in policy
        for kind, tag in (("script", "script"), ("style", "style")):
            (content,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            assert f"{kind}-src 'sha256-{digest}'" in policy
        assert not re.search(r'(?:src|href)="(?:https?:)?//|style="', page)


def test_every_link_leads_to_a_page_that_is_there(tmp_path):
    rendered(tmp_path, run([CHAIN], samples=3), run([TREE], domain="chat"))
    folder = tmp_path / "site" / "traces"
    pages = sorted(folder.glob("*.html"))
    assert [path.name for path in pages] == ["1-1.html", "1-2.html", "1-3.html", "2-1.html", "index.html"]
    for path in pages:
        links = set(re.findall(r'href="([^"]*)"', path.read_text(encoding="utf-8"))) - {"../index.html"}
        assert links
        assert all((folder / link).is_file() for link in links)


def test_a_limit_takes_domains_in_turn_and_old_pages_go(tmp_path):
    many, few = run([CHAIN], samples=5), run([TREE], name="t", domain="chat", samples=2)
    both = replace(
        many,
        samples=[*many.samples, *few.samples],
        cells=[*many.cells, *few.cells],
        traces=[*many.traces, *few.traces],
    )
    rendered(tmp_path, both)
    folder = tmp_path / "site" / "traces"
    (folder / "mine.html").write_text("kept", encoding="utf-8")
    index = rendered(tmp_path, both, limit=4)[0]
    assert "4 of 7 samples have a page" in index
    assert sorted(path.name for path in folder.iterdir()) == [
        "1-1.html",
        "1-2.html",
        "1-6.html",
        "1-7.html",
        "index.html",
        "mine.html",
    ]
    assert render_traces([both], tmp_path / "site", limit=0).left_out == 7
    assert [path.name for path in folder.iterdir()] == ["mine.html"]


def test_equal_traces_give_equal_bytes(tmp_path):
    assert rendered(tmp_path / "a", run([CHAIN])) == rendered(tmp_path / "b", run([CHAIN]))


def test_what_cannot_be_written_is_named(tmp_path):
    (tmp_path / "site").write_text("a file", encoding="utf-8")
    with pytest.raises(UserError, match="cannot be written"):
        rendered(tmp_path, run([CHAIN]))
