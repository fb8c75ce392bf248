"""What is asked: samples, suites, their loaders and the bundled prompts.

Loaders are pure: no tokenizer, no truncation, no chat template, a stable order. A suite carries the hash of
what it was read from, so that figures from different texts are never compared. Nothing here imports torch or
anything of ours outside this package.
"""

from draftboard.suites.errors import SuiteError
from draftboard.suites.registry import (
    SuiteInfo,
    describe_suites,
    load_suite,
    register_suite,
    settings_of,
    suite_names,
)
from draftboard.suites.request import Request, SuiteSettings
from draftboard.suites.sample import Raw, Sample, Suite
from draftboard.suites.scorers import SCORERS, add_scorer_name, scorer_names
from draftboard.suites.select import PARTS, Part, Split, limited, of_categories, of_ids, part_of, read_ids, split

__all__ = [
    "PARTS",
    "SCORERS",
    "Part",
    "Raw",
    "Request",
    "Sample",
    "Split",
    "Suite",
    "SuiteError",
    "SuiteInfo",
    "SuiteSettings",
    "add_scorer_name",
    "describe_suites",
    "limited",
    "load_suite",
    "of_categories",
    "of_ids",
    "part_of",
    "read_ids",
    "register_suite",
    "scorer_names",
    "settings_of",
    "split",
    "suite_names",
]
