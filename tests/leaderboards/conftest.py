"""One fixed board that shows every kind of cell, and a reader that sees a page as a browser's text would."""

from html.parser import HTMLParser

import pytest

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
