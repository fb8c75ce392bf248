import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.foreign.figures import base_name, figure, grouped, is_secret, labelled, number, percentile, scalar
from draftboard.results import MethodResult


@pytest.mark.parametrize(
    ("value", "found"),
    [("0.2500", 0.25), (3, 3.0), ("-1e3", -1000.0), ("x", None), (None, None), (True, None), ([1], None)],
)
def test_numbers_may_be_text(value, found):
    assert number(value) == found


def test_a_huge_whole_number_is_not_finite():
    assert number(10**400) == math.inf
    assert figure(10**400).reason == "not a finite number"


def test_a_figure_without_a_number_has_a_reason():
    assert figure("0.5", scale=2, n=3).value == 1.0
    for value in (None, "x", math.nan, math.inf, "nan"):
        made = figure(value)
        assert made.value is None
        assert made.reason


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (3, "3"),
        (0.5, "0.5"),
        (True, "true"),
        (" a\n b ", "a b"),
        ("***REDACTED***", None),
        ("", None),
        (None, None),
        ([1], None),
    ],
)
def test_plain_values_become_one_line(value, found):
    assert scalar(value) == found


@pytest.mark.parametrize("text", ["hf_abcdefghijk", "x sk-abcdefgh1234", "http://me:pw@host/", "AKIAABCDEFGH12345"])
def test_what_looks_like_a_secret_is_dropped(text):
    assert scalar(text) is None


@pytest.mark.parametrize("name", ["api_key", "HF_TOKEN", "password", "auth", "client_secret"])
def test_names_of_secrets(name):
    assert is_secret(name)


@pytest.mark.parametrize("name", ["max_tokens", "tokenizer_id", "total_output_tokens", "note"])
def test_names_of_counts_are_none(name):
    assert not is_secret(name)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("meta-llama/Llama-3", "meta-llama/Llama-3"),
        ("/home/me/models/llama/", "llama"),
        ("C:\\models\\llama", "llama"),
        ("./models/llama", "llama"),
        ("~/llama", "llama"),
        ("llama", "llama"),
    ],
)
def test_no_folder_is_kept_but_an_id_is(path, name):
    assert base_name(path) == name


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.integers(1, 99))
def test_percentiles_lie_between_the_values_around_them(values, percent):
    ordered = sorted(values)
    place = (len(values) - 1) * percent / 100
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    assert low - 1e-6 <= percentile(values, percent) <= high + 1e-6


def test_labels_take_as_many_folders_as_tell_them_apart():
    paths = [Path("/a/x/run"), Path("/b/x/run"), Path("/b/other")]
    assert list(labelled(paths).values()) == ["a/x/run", "b/x/run", "other"]
    assert labelled([Path("/a/x"), Path("/a/x")]) == {Path("/a/x"): "x"}


def test_methods_of_one_set_of_conditions_share_a_group():
    parts = [({"model": "m", "c": c}, MethodResult(method="x")) for c in (1, 2, 1)]
    groups = grouped(parts, notes=["n"], source="tool")
    assert [[method.method for method in group.methods] for group in groups] == [["x", "x #2"], ["x"]]
    assert groups[0].conditions == {"c": "1", "source": "tool"}
    assert groups[0].notes == ("n",)
