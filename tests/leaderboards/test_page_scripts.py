import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.leaderboards.page_scripts import begin_chart_library, chart_library, json_block, source_hash


@given(st.text())
def test_no_text_can_leave_its_block(text):
    block = json_block({"a": [text]})
    assert re.fullmatch("[ -~]*", block)
    assert not set(block) & set("<>&")
    assert json.loads(block) == {"a": [text]}


def test_a_closing_tag_and_a_comment_are_inert_and_read_back():
    text = "</script><!-- <script> ]]> \u2028\u2029\u202e"
    assert json.loads(json_block({"a": text})) == {"a": text}


def test_the_library_can_stand_in_a_script_element():
    source = chart_library()
    assert not re.search(r"</script|<!--", source, flags=re.IGNORECASE)
    assert "BSD 3-Clause" in source.partition("\n")[0]


@pytest.fixture
def nothing_begun():
    """A render of another test may have begun the library and never asked for it."""
    if begin_chart_library.cache_info().currsize:
        process = begin_chart_library()
        process.kill()
        process.wait()
        process.stdout.close()
    for kept in (begin_chart_library, chart_library):
        kept.cache_clear()


@pytest.mark.usefixtures("nothing_begun")
def test_what_was_begun_early_is_the_same_library():
    plain = chart_library()
    chart_library.cache_clear()
    assert begin_chart_library() is begin_chart_library()
    assert chart_library() == plain
    assert begin_chart_library().returncode == 0


def test_a_hash_is_what_a_policy_calls_a_source():
    assert source_hash("") == "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
