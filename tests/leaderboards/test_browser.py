"""Pages in a real browser, without a network and under their own policy: nothing on the console, every chart drawn."""

import re
import shutil
import subprocess
from dataclasses import replace

import pytest

from draftboard.leaderboards import render
from draftboard.results import Figure, Results

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--enable-logging=stderr",
    "--v=0",
    "--virtual-time-budget=8000",
    "--window-size=1300,900",
)
HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!-- \u202ereversed\u2069 \u2028x",
    "\"><img src=x onerror=alert(1)> {{7*7}} & 'q'",
)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")


def opened(path, profile):
    """Return the page as the browser has made it, and what it wrote on its console. A busy machine gets two tries."""
    for attempt in (1, 2):
        command = [str(CHROMIUM), *FLAGS, f"--user-data-dir={profile}-{attempt}", "--dump-dom", path.as_uri()]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
            if attempt == 2:
                raise
            continue
        if "</html>" in done.stdout:
            break
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture
def full(spec_bench):
    """A board on which every chart is drawn."""
    times = {f"{part}_ms": Figure(value=2.0) for part in ("draft", "verify", "other")}
    methods = tuple(replace(method, overall={**method.overall, **times}) for method in spec_bench.methods)
    return replace(spec_bench, methods=methods)


def test_a_page_draws_its_charts_in_silence(full, tmp_path):
    page = render(Results(groups=(full, replace(full, hardware="another"))), tmp_path / "site")[0]
    dom, console = opened(page, tmp_path / "profile")
    assert console == []
    assert len(re.findall(r'class="plot[^"]*"', dom)) == 16
    assert len(re.findall(r'<svg[^>]*class="marks"', dom)) == 16
    assert page.stat().st_size < 5_000_000


def test_hostile_names_are_text_in_charts_too(full, tmp_path):
    names = dict(zip([method.method for method in full.methods], HOSTILE, strict=True))
    methods = tuple(replace(method, method=names[method.method]) for method in full.methods)
    domains = {"qa": HOSTILE[0]}
    methods = tuple(
        replace(
            method,
            domains={
                domains.get(name, name): replace(each, domain=domains.get(name, name))
                for name, each in method.domains.items()
            },
        )
        for method in methods
    )
    group = replace(
        full,
        methods=methods,
        baseline=HOSTILE[0],
        domains=tuple(domains.get(name, name) for name in full.domains),
        model=HOSTILE[1],
    )
    page = render(Results(groups=(group,), title=HOSTILE[2]), tmp_path / "site")[0]
    dom, console = opened(page, tmp_path / "profile")
    assert console == []
    assert "<img" not in re.sub(r"<script.*?</script>", "", dom, flags=re.DOTALL)
    assert len(re.findall(r'<svg[^>]*class="marks"', dom)) == 8
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", dom)
    assert "&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;" in texts


def probed(page, tmp_path, script):
    """Return what a script of the test finds on the page, whose policy is taken off for it."""
    text = re.sub(r"<meta http-equiv[^>]*>", "", page.read_text(encoding="utf-8"))
    before, _, after = text.rpartition("</body>")  # the charting library holds one, too
    (tmp_path / "probe.html").write_text(f"{before}<script>{script}</script></body>{after}", encoding="utf-8")
    dom, console = opened(tmp_path / "probe.html", tmp_path / "profile")
    assert console == []
    return re.search(r'data-seen="([^"]*)"', dom)[1].split(" / ")


def test_tables_are_filtered_by_name_output_and_domain(full, tmp_path):
    page = render(Results(groups=(full,)), tmp_path / "site")[0]
    script = """
    const form = document.querySelector("form.filter");
    const table = document.querySelector("table.board");
    const seen = [];
    const look = () => seen.push(
      [...table.tBodies[0].rows].filter((row) => !row.hidden).map((row) => row.dataset.method).join(",")
      + "|" + [...table.tHead.rows[0].cells].filter((head) => !head.hidden && head.dataset.domain).length
      + "|" + form.querySelector("output").textContent);
    const set = (name, value) => {
      form.elements[name].value = value;
      form.elements[name].dispatchEvent(new Event("input", { bubbles: true }));
      look();
    };
    look(); set("text", "EAG"); set("text", ""); set("output", "lossy"); set("domain", "qa"); set("text", "nothing");
    form.reset();
    setTimeout(() => { look(); document.body.dataset.seen = seen.join(" / "); }, 10);
    """
    everything = "tss[pld],eagle2,autoregressive|6|"
    assert probed(page, tmp_path, script) == [
        everything,
        "eagle2|6|1 of 3 methods",
        everything,
        "tss[pld]|6|1 of 3 methods",
        "tss[pld]|1|1 of 3 methods",
        "|1|No method matches.",
        everything,
    ]


def test_a_turned_table_is_filtered_by_its_columns(full, tmp_path):
    page = render(Results(groups=(full,)), tmp_path / "site")[0]
    script = """
    const form = document.querySelector("form.filter");
    const table = document.querySelector("table.turned");
    form.elements.text.value = "eagle";
    form.elements.domain.value = "rag";
    form.dispatchEvent(new Event("input"));
    const shown = (cells) => [...cells].filter((cell) => !cell.hidden);
    document.body.dataset.seen = [
      shown(table.tHead.rows[0].cells).map((head) => head.querySelector(".name")?.textContent ?? "").join(","),
      shown(table.tBodies[0].rows).map((row) => row.querySelector(".name").textContent).join(","),
      shown(table.tBodies[0].rows[0].cells).length,
    ].join(" / ");
    """
    assert probed(page, tmp_path, script) == [",eagle2", "rag · Token F1", "2"]


def test_a_label_at_the_edge_of_a_chart_is_not_cut(full, tmp_path):
    page = render(Results(groups=(full,)), tmp_path / "site")[0]
    script = """
    const chart = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    document.querySelector(".plot").append(chart);
    document.body.dataset.seen = getComputedStyle(chart).overflow;
    """
    assert probed(page, tmp_path, script) == ["visible"]
