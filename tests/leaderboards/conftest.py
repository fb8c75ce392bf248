"""Fixed boards that show every kind of cell, and a reader that sees a page as a browser's text would."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from draftboard.leaderboards import boards
from draftboard.results import DomainResult, Figure, Group, Interval, MethodResult, Results


class Page(HTMLParser):
    """Collects the text, tags and rows of a page; the content of script and style is kept apart."""

    def __init__(self, source):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.rows, self.texts = [], [], [], []
        self._inside = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))
        self._inside.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        while self._inside and self._inside.pop() != tag:
            pass

    def handle_data(self, data):
        if self._inside and self._inside[-1] in ("script", "style"):
            return
        self.texts.append(data)
        if self.rows and ("td" in self._inside or "th" in self._inside) and "sup" not in self._inside:
            self.rows[-1][-1] += data

    def column(self, title):
        """Return the texts below the first header that is `title`."""
        for index, row in enumerate(self.rows):
            if title in row:
                place, length = row.index(title), len(row)
                found = []
                for other in self.rows[index + 1 :]:
                    if len(other) != length:
                        break
                    found.append(other[place])
                return found
        raise AssertionError(f"no column {title!r}")


@pytest.fixture
def page():
    return Page


def _method(name, speedups, overall, **about):
    domains = {
        domain: DomainResult(domain=domain, figures={"speedup": figure}, samples=40)
        for domain, figure in speedups.items()
    }
    return MethodResult(method=name, domains=domains, overall=overall, **about)


@pytest.fixture
def board():
    """Baseline, two methods that tie, a lossy one with an interval, one that lacks a domain."""
    plain = _method(
        "autoregressive",
        {"qa": Figure(value=1.0, n=40), "translation": Figure(value=1.0, n=40)},
        {
            "speedup": Figure(value=1.0, n=80),
            "acceptance_length": Figure(value=1.0, n=80),
            "acceptance_rate": Figure(value=None, reason="nothing drafted"),
            "ttft_s": Figure(value=0.2, n=80),
        },
        output="identical",
        lossless=True,
    )
    tied = [
        _method(
            name,
            {"qa": Figure(value=1.5, n=40), "translation": Figure(value=1.5, n=40)},
            {
                "speedup": Figure(value=1.5, n=80),
                "acceptance_length": Figure(value=2.25, n=80),
                "acceptance_rate": Figure(value=0.31, n=80),
                "ttft_s": Figure(value=0.21, n=80),
            },
            output="identical",
            lossless=True,
            settings={"draft_length": 40, "budget": "auto"},
            reference="A paper, 2025",
        )
        for name in ("samd[token_recycling]", "a|b*c*")
    ]
    lossy = _method(
        "tss[pld]",
        {"qa": Figure(value=2.004, n=40), "translation": Figure(value=1.9, n=40)},
        {
            "speedup": Figure(value=1.951, n=80, interval=Interval(low=1.9, high=2.0)),
            "acceptance_length": Figure(value=2.0, n=80),
            "ttft_s": Figure(value=0.19, n=80),
        },
        output="lossy",
        lossless=False,
        notes=("calibrated on 64 samples",),
    )
    partial = _method(
        "partial",
        {"qa": Figure(value=3.0, n=40)},
        {"speedup": Figure(value=None, reason="1 of 2 domains")},
    )
    signature = "nrefs:1|tok:13a|version:2.6.0"
    for method, bleu in ((plain, 22.0), (lossy, 20.5)):
        method.domains["translation"].figures["bleu"] = Figure(value=bleu, n=40, signature=signature)
    group = Group(
        model="tiny",
        hardware="cpu",
        suite="mini",
        conditions={"dtype": "float32"},
        domains=("qa", "translation"),
        methods=(plain, *tied, lossy, partial),
        notes=("2 samples skipped in every method",),
    )
    return Results(groups=(group,))


SPEC_BENCH = ("mt_bench", "translation", "summarization", "qa", "math_reasoning", "rag")


def _domain(name, speedup, n, **figures):
    found = {
        "speedup": Figure(value=speedup, n=n),
        "speedup_specbench": Figure(value=speedup + 0.05, n=n),
        "acceptance_length": Figure(value=speedup + 1, n=n),
    }
    return DomainResult(domain=name, figures=found | figures, samples=n)


def _overall(mean, accepted, **figures):
    found = {
        "speedup": Figure(value=mean, n=480, interval=Interval(low=mean - 0.1, high=mean + 0.1)),
        "speedup_pooled": Figure(value=mean + 0.01, n=480),
        "speedup_gm": Figure(value=mean - 0.02, n=480),
        "speedup_specbench": Figure(value=mean + 0.05, n=480),
        "spec_bench_mean_accepted": Figure(value=accepted, n=480),
        "acceptance_length": Figure(value=accepted + 0.01, n=480),
    }
    return found | figures


@pytest.fixture
def spec_bench():
    """A group over Spec-Bench: the baseline, a lossless and a lossy method with details of quality and positions."""

    def method(name, speedups, overall, scores, counts=None, **about):
        domains = {
            domain: _domain(domain, speedup, 80, **scores.get(domain, {}))
            for domain, speedup in zip(SPEC_BENCH, speedups, strict=True)
        }
        counted = domains["math_reasoning"]
        domains["math_reasoning"] = replace(counted, score_counts=counts or {})
        return MethodResult(method=name, domains=domains, overall=overall, **about)

    plain = method(
        "autoregressive",
        [1.0] * 6,
        _overall(1.0, 1.0, ttft_s=Figure(value=0.0421, n=480), ttft_p99_s=Figure(value=0.0987, n=480)),
        {
            "translation": {
                "bleu": Figure(value=30.0, n=80, interval=Interval(low=28.0, high=32.0)),
                "chrf": Figure(value=55.0, n=80),
                "bleu_clean": Figure(value=31.0, n=80),
            },
            "rag": {"f1": Figure(value=12.5, n=78)},
            "math_reasoning": {
                "accuracy": Figure(value=0.5, n=80),
                "unparsed_rate": Figure(value=0.025, n=80),
                "mean_words": Figure(value=90.0, n=80),
            },
        },
        {"scored": 80, "failed": 0, "unparsed": 2, "rule:boxed": 60, "rule:stated": 18},
    )
    eagle = method(
        "eagle2",
        [2.5, 2.0, 2.1, 2.2, 2.6, 2.0],
        _overall(2.22, 4.34, ttft_s=Figure(value=0.05, n=480)),
        {},
        output="identical",
        lossless=True,
        positions={
            "joint": tuple(Figure(value=0.9 - 0.1 * k, n=1000 // 4**k) for k in range(5)),
            "conditional": (Figure(value=0.9, n=1000), Figure(value=None, n=0, reason="no step came this far")),
            "vllm": tuple(Figure(value=0.9 / 4**k, n=1000) for k in range(5)),
        },
    )
    lossy = method(
        "tss[pld]",
        [3.0, 2.5, 2.6, 2.7, 3.1, 2.5],
        _overall(2.72, 3.0, speedup_gm=Figure(value=None, reason="one sample without tokens")),
        {
            "translation": {
                "bleu": Figure(value=28.5, n=80, interval=Interval(low=26.5, high=30.5)),
                "chrf": Figure(value=54.0, n=80),
                "bleu_clean": Figure(value=31.0, n=80),
            },
            "rag": {"f1": Figure(value=12.0, n=79)},
            "math_reasoning": {
                "accuracy": Figure(value=0.4, n=80),
                "unparsed_rate": Figure(value=0.125, n=80),
                "mean_words": Figure(value=60.0, n=80),
            },
        },
        {"scored": 80, "failed": 0, "unparsed": 10, "rule:boxed": 70},
        output="lossy",
        lossless=False,
    )
    return Group(
        model="vicuna-7b-v1.3",
        hardware="one GPU",
        suite="spec_bench",
        conditions={"decoding": "greedy", "dtype": "float16", "batch size": "1"},
        domains=SPEC_BENCH,
        methods=(plain, eagle, lossy),
    )


@pytest.fixture
def table_of():
    """Finds a group's table by its key; None if there is none."""

    def find(group, key):
        return next((table for table in boards(group) if table.key == key), None)

    return find


@pytest.fixture
def cell_of():
    """Finds the cell of a method and a figure, however the table lies."""

    def find(table, method, title):
        heads, rows = [column.title for column in table.columns], [row.method for row in table.rows]
        if table.sortable:
            return table.rows[rows.index(method)].cells[heads.index(title)]
        return table.rows[rows.index(title)].cells[heads.index(method)]

    return find


@pytest.fixture
def notes_of():
    """Reads the footnotes of a cell, a row or a column."""
    return lambda table, part: [table.footnotes[number - 1] for number in part.notes]
