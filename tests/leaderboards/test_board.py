"""Whatever figures a group holds, its tables are whole: as many cells as columns, notes that exist, no odd number."""

import io
import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from draftboard.leaderboards import boards, terminal_table
from draftboard.leaderboards.html import html
from draftboard.leaderboards.markdown import markdown
from draftboard.metrics import METRICS
from draftboard.results import DomainResult, Figure, Group, Interval, MethodResult, Results

NAMES = (*METRICS, "accuracy/stem", "bleu/zh", "a_plugins_own")
DOMAINS = (
    "mt_bench", "translation", "summarization", "qa", "math_reasoning", "rag", "coding", "speed_bench: qa",
    "spec_bench: qa", "speed_bench/coding", "mmlu",
)  # fmt: skip
VALUES = st.none() | st.floats(allow_nan=True, allow_infinity=True) | st.integers(-3, 3).map(float)
FIGURES = st.builds(
    Figure,
    value=VALUES,
    n=st.none() | st.integers(0, 100),
    reason=st.sampled_from(["", "not recorded"]),
    signature=st.sampled_from(["", "tok:13a"]),
    interval=st.none() | st.builds(Interval, low=st.floats(-1, 1), high=st.floats(1, 2)),
)
BY_NAME = st.dictionaries(st.sampled_from(NAMES), FIGURES, max_size=12)


@st.composite
def groups(draw):
    domains = tuple(draw(st.lists(st.sampled_from(DOMAINS), unique=True, max_size=8)))
    methods = []
    for name in draw(st.lists(st.sampled_from(["autoregressive", "x", "y|z", "w"]), unique=True, max_size=4)):
        inside = {
            domain: DomainResult(
                domain=domain,
                figures=draw(BY_NAME),
                samples=draw(st.none() | st.integers(0, 80)),
                failed=draw(st.integers(0, 1)),
                score_counts=draw(st.dictionaries(st.sampled_from(["scored", "rule:boxed"]), st.integers(0, 9))),
            )
            for domain in domains
            if draw(st.booleans())
        }
        places = st.lists(FIGURES, max_size=15).map(tuple)
        methods.append(
            MethodResult(
                method=name,
                domains=inside,
                overall=draw(BY_NAME),
                output=draw(st.sampled_from(["", "identical", "lossy", "text-different"])),
                lossless=draw(st.none() | st.booleans()),
                positions=draw(st.dictionaries(st.sampled_from(["joint", "conditional", "vllm", "other"]), places)),
            )
        )
    suite = draw(st.sampled_from(["", "spec_bench", "speed_bench", "spec_bench + speed_bench", "mini"]))
    return Group(model="m", hardware="", suite=suite, domains=domains, methods=tuple(methods))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(groups())
def test_tables_are_whole_whatever_the_figures(group):
    tables = boards(group)
    assert len({table.key for table in tables}) == len(tables)
    for table in tables:
        assert table.rows
        notes = {number for row in table.rows for number in row.notes}
        notes |= {number for column in table.columns for number in column.notes}
        for row in table.rows:
            assert len(row.cells) == len(table.columns)
            notes |= {number for cell in row.cells for number in cell.notes}
            assert not any(re.search("nan|inf", cell.text) for cell in row.cells)
        assert notes <= set(range(1, len(table.footnotes) + 1))


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(groups())
def test_every_renderer_takes_whatever_the_figures_are(group):
    results = Results(groups=(group,))
    assert html(results) == html(results)
    assert markdown(results).startswith("# ")
    console = Console(width=80, file=io.StringIO())
    console.print(terminal_table(group, every=True))
    # A title over a narrow table is folded.
    shown = "".join(console.file.getvalue().split())
    assert [table.title for table in boards(group) if "".join(table.title.split()) not in shown] == []
