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
    suite_names,
)
from draftboard.suites.sample import SCORERS, Sample, Suite, limited

__all__ = [
    "SCORERS",
    "Sample",
    "Suite",
    "SuiteError",
    "SuiteInfo",
    "describe_suites",
    "limited",
    "load_suite",
    "register_suite",
    "suite_names",
]
