import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from draftboard.leaderboards import boards
from draftboard.leaderboards.html import html
from draftboard.results import Figure, Group, MethodResult, Results, Verdict

GOLDEN = Path(__file__).parent / "golden" / "main.html"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
HOSTILE = (
    "</title><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7*7 }}",
    "{% include 'x' %}",
    "\u202ereversed\u2069",
    "--></style></script>",
    "x" * 300,
    "two\nlines",
)


def named(name):
    """A board in which everything that can hold text holds this one."""
    method = MethodResult(
        method=name,
        overall={"speedup": Figure(value=2.0), "acceptance_length": Figure(value=None, reason=name)},
        output=name,
        lossless=True,
        settings={name: name, "nested": {name: [name]}},
        reference=name,
        notes=(name,),
    )
    other = MethodResult(method="other", overall={"speedup": Figure(value=1.0)})
    group = Group(
        model=name,
        hardware=name,
        suite=name,
        baseline=name,
        conditions={name: name},
        domains=(name,),
        methods=(method, other),
        notes=(name,),
    )
    return Results(groups=(group,), title=name)


def test_golden(board):
    text = html(board)
    main = text[text.index("<main") : text.index("</main>")]
    if os.environ.get("DRAFTBOARD_UPDATE_GOLDEN"):
        GOLDEN.write_text(main, encoding="utf-8", newline="\n")
    assert main == GOLDEN.read_text(encoding="utf-8")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp", "Cn"]), min_size=1, max_size=20))
@example("<b>bold</b> & 'quotes' \"double\"")
def test_every_text_reads_back_and_adds_no_tag(page, name):
    plain, given_name = page(html(named("plain"))), page(html(named(name)))
    assert given_name.tags == plain.tags
    assert f"{name} baseline" in given_name.column("Method")
    assert name in given_name.texts


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_add_no_tag_and_no_attribute(page, name):
    plain, hostile = page(html(named("plain"))), page(html(named(name)))
    assert hostile.tags == plain.tags
    assert [(tag, set(attributes)) for tag, attributes in hostile.attributes] == [
        (tag, set(attributes)) for tag, attributes in plain.attributes
    ]
    assert name.replace("\n", " ") + " baseline" in hostile.column("Method")


def scripts_of(text):
    return re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)


def hashed(source):
    return "'sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() + "'"


def test_the_policy_admits_our_scripts_and_our_style_by_hash_and_nothing_else(board):
    text = html(board)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    rules = dict(rule.split(" ", 1) for rule in policy.replace("&#39;", "'").split("; "))
    (style,) = re.findall(r"<style>(.*?)</style>", text, flags=re.DOTALL)
    assert rules == {
        "default-src": "'none'",
        "script-src": " ".join(map(hashed, scripts_of(text))),
        "style-src": hashed(style),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    assert ' style="' not in text
    assert scripts_of(text) == scripts_of(html(named("x")))


def test_the_charting_library_is_there_once_and_only_with_charts(board):
    both = replace(board, groups=(board.groups[0], replace(board.groups[0], hardware="gpu")))
    assert sum("vegaEmbed" in script and len(script) > 1e5 for script in scripts_of(html(both))) == 1
    silent = MethodResult(method="m", overall={"speedup": Figure(value=None, reason="lost")})
    text = html(Results(groups=(Group(model="m", hardware="", suite="", methods=(silent,)),)))
    assert len(text) < 1e5
    assert "chart-data" not in text


def test_what_charts_show_is_inert_data():
    for name in HOSTILE:
        shown = named(name)
        shown = replace(shown, groups=(replace(shown.groups[0], baseline="other"),))
        (block,) = re.findall(
            r'<script type="application/json" id="chart-data">(.*?)</script>', html(shown), flags=re.DOTALL
        )
        specs = json.loads(block)
        records = [record for spec in specs.values() for data in spec["datasets"].values() for record in data]
        assert {record["method"] for record in records if "method" in record} == {name.replace("\n", " ")}
        assert not re.search("[<>&]|[^ -~]", block)


def test_the_page_needs_no_network(page, board):
    parsed = page(html(board))
    addresses = [
        value
        for _, attributes in parsed.attributes
        for key, value in attributes.items()
        if key in ("src", "href", "action", "data") and value
    ]
    assert {a for a in addresses if not a.startswith("#")} == {
        f"leaderboard.{kind}" for kind in ("json", "csv", "parquet", "md", "tex")
    }
    ours = html(board)
    for script in scripts_of(ours):
        if "vegaEmbed=" in script:  # the library holds the names of SVG's and Vega's schemas, which it never opens
            ours = ours.replace(script, "")
    assert not re.search(r"https?://|@import|url\(", ours)


def test_links_inside_the_page_lead_somewhere(page, board):
    parsed = page(html(board))
    ids = [attributes["id"] for _, attributes in parsed.attributes if "id" in attributes]
    links = [a["href"][1:] for tag, a in parsed.attributes if tag == "a" and a["href"].startswith("#")]
    assert links
    assert set(links) <= set(ids)
    assert len(ids) == len(set(ids))


def test_tables_are_accessible(page, board):
    parsed = page(html(board))
    assert parsed.tags.count("table") == parsed.tags.count("caption") == len(boards(board.groups[0]))
    heads = [attributes for tag, attributes in parsed.attributes if tag == "th"]
    assert {attributes["scope"] for attributes in heads} == {"row", "col"}


def test_sorting_uses_the_unrounded_value(page, board):
    values = [a["data-value"] for tag, a in page(html(board)).attributes if tag == "td" and "data-value" in a]
    assert "1.951" in values
    assert "2.004" in values


def test_details_are_behind_an_element_that_needs_no_script(page, spec_bench):
    text = html(Results(groups=(spec_bench,)))
    titles = [table.title for table in boards(spec_bench) if table.level == "detail"]
    assert len(titles) >= 4
    summaries = re.findall(r"<summary><h4><bdi>(.*?)</bdi></h4></summary>", text)
    assert summaries == titles
    assert page(text).tags.count("details") == len(titles) + 1  # and the glossary of their figures
    assert text.index("<h3><bdi>Quality") < text.index("<h3><bdi>Acceptance") < text.index("<details")


def test_a_turned_table_has_no_buttons_to_sort_it_by(spec_bench):
    text = html(Results(groups=(spec_bench,)))
    quality = text[text.index("<h3><bdi>Quality") : text.index("<h3><bdi>Acceptance")]
    assert "<button" not in quality
    assert 'class="board turned"' in quality


def test_a_tile_of_a_lossy_method_says_what_it_lost(page, spec_bench):
    texts = page(html(Results(groups=(spec_bench,)))).texts
    tile = texts[texts.index("Fastest overall") : texts.index("Longest acceptance τ")]
    assert [text.strip() for text in tile if text.strip()] == [
        "Fastest overall",
        "2.72×",
        "tss[pld]",
        "lossy",
        "BLEU -1.5, Accuracy -0.100 (unparsed +0.100)",
    ]


def test_turns_under_another_prompt_are_told_with_the_method(page, spec_bench):
    methods = (*spec_bench.methods[:-1], replace(spec_bench.methods[-1], diverged_turns=3))
    texts = page(html(Results(groups=(replace(spec_bench, methods=methods),)))).texts
    assert "3 turns under another prompt" in texts


def test_several_groups_are_several_sections(page, board):
    twice = replace(board, groups=(board.groups[0], replace(board.groups[0], hardware="gpu")))
    parsed = page(html(twice))
    ids = {attributes.get("id") for tag, attributes in parsed.attributes if tag == "section"}
    assert {"board-1", "board-2"} <= ids


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")
def test_sorting_keeps_missing_values_last_in_either_direction(tmp_path, board):
    probe = """<script>
    const order = () => [...document.querySelectorAll("table.board")[0].tBodies[0].rows]
      .map((row) => row.querySelector("th.method bdi").textContent).join(";");
    const button = document.querySelectorAll("table.board th.headline button")[0];
    const seen = [order()];
    button.click(); seen.push(order()); button.click(); seen.push(order());
    document.body.innerHTML = ""; document.body.dataset.seen = seen.join(" / ");
    </script></body>"""
    text = re.sub(r"<meta http-equiv[^>]*>", "", html(board))
    text = probe.join(text.rsplit("</body>", 1))  # the charting library holds one more
    path = tmp_path / "page.html"
    path.write_text(text, encoding="utf-8")
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--no-first-run",
    ]
    flags += ["--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND"]
    done = subprocess.run(
        [str(CHROMIUM), *flags, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found = re.search(r'data-seen="([^"]*)"', done.stdout)
    assert found
    first, down, up = found[1].split(" / ")
    assert first == "tss[pld];a|b*c*;samd[token_recycling];autoregressive;partial"
    assert down == first
    assert up == "autoregressive;a|b*c*;samd[token_recycling];tss[pld];partial"


def test_what_keeps_a_group_from_a_claim_stands_directly_under_its_title(page, board):
    group = replace(board.groups[0], verdict=Verdict(valid=False, reasons=("<b>few</b>", "1 of 2 cells have not run")))
    text = html(replace(board, groups=(group,)))
    texts = [part.strip() for part in page(text).texts if part.strip()]
    title = texts.index("tiny · mini · cpu")
    assert texts[title + 1].startswith("Not valid for claims")
    assert texts[title + 2 : title + 4] == ["<b>few</b>", "1 of 2 cells have not run"]
