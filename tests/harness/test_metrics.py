"""The table of metrics: names, kinds, and what becomes of names that it does not hold."""

from pathlib import Path

from draftboard.metrics import METRICS, Metric, metric

KINDS = {"speed", "acceptance", "time", "machine", "serving", "quality", "quality_detail"}


def test_every_metric_can_be_shown():
    for name, known in METRICS.items():
        assert (known.name, known.kind in KINDS) == (name, True)
        assert known.title
        assert known.about
        assert known.digits >= 0
    titles = [known.title for known in METRICS.values()]
    assert sorted(titles) == sorted(set(titles))


def test_units_say_what_names_say():
    for name, known in METRICS.items():
        endings = {"_per_s": "/s", "_s": "s", "_ms": "ms", "_bytes": "bytes", "_w": "W"}
        unit = next((unit for ending, unit in endings.items() if name.endswith(ending)), "")
        assert known.unit.endswith(unit), name
        if name.startswith("speedup"):
            assert known.unit == "×"


def test_waiting_and_spending_are_better_when_less():
    less = {name for name, known in METRICS.items() if not known.higher_is_better}
    assert {"ttft_s", "tpot_s", "step_gap_max_s", "peak_rss_bytes", "energy_j_per_token", "draft_ms"} <= less
    assert not less & {"speedup", "acceptance_length", "tokens_per_s", "accuracy"}


def test_a_part_of_a_metric_is_a_detail_shown_like_the_whole():
    part = metric("bleu/zh")
    assert (part.title, part.kind, part.digits) == ("BLEU (zh)", "quality_detail", METRICS["bleu"].digits)
    assert metric("brevity/odd").kind == "quality_detail"


def test_an_unknown_name_is_a_quality_figure_of_its_own():
    assert metric("brief") == Metric(name="brief", title="brief", kind="quality")


def test_every_measured_metric_is_defined_on_its_page():
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
    measured = [name for name, known in METRICS.items() if not known.kind.startswith("quality")]
    assert len(measured) > 50
    assert [name for name in measured if f"`{name}`" not in page] == []


def test_every_description_stands_alone():
    told = [known.about for known in METRICS.values()]
    assert sorted(told) == sorted(set(told))
    for text in told:
        assert not text.startswith(("the same", "else ", "of ", "from ", "behind ", "F1, ")), text
        assert text == text.strip().rstrip("."), text


def test_the_list_names_and_describes_every_metric(cli):
    lines = cli("list", "metrics").out.splitlines()
    assert [line.split()[0] for line in lines] == list(METRICS)
    assert any("ROUGE-L: ROUGE-L F1, mean over samples, 0-100  (kind: quality)" in line for line in lines)
    rows = {row["name"]: row for row in cli("list", "metrics", "--json").json}
    assert rows["ttft_p95_s"]["about"] == "TTFT, p95: time to first token over requests, 95th percentile"
