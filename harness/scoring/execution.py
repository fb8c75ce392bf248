"""pass@1 of code answers: does the function pass its tests? Nothing is run unless the user asks for it."""

import os
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from draftboard.scoring.code_text import entry_point, programs, with_call
from draftboard.scoring.records import Answer, Item, Scores, intake, mean_value, mean_words, nothing_scored
from draftboard.scoring.registry import register_scorer
from draftboard.scoring.sandbox import LIMITS, Outcome, RunCode, require_sandbox, run_program
from draftboard.scoring.texts import unicode_tokens

__all__ = ["NOT_RUN", "score_pass_at_1"]

NOT_RUN = "code is not run unless asked for: draftboard score RUN --run-code"
_OUTCOMES: tuple[Outcome, ...] = ("passed", "failed", "error", "syntax", "timeout", "refused")


def _signature(run_code: RunCode) -> str:
    python = ".".join(map(str, sys.version_info[:2]))
    kept = "none" if run_code == "unisolated" else "namespaces"
    return (
        f"isolation:{kept}|cpu:{LIMITS.cpu_s}s|wall:{LIMITS.wall_s}s|memory:{LIMITS.memory_bytes >> 20}MiB"
        f"|python:{python}|packages:none|draftboard:1"
    )


@register_scorer(
    "pass_at_1", about="share of code answers that pass their tests; runs code, so only with --run-code", runs_code=True
)
def score_pass_at_1(answers: Sequence[Answer], *, run_code: RunCode = False) -> Scores:
    """Score code: `pass_at_1` on 0-1, `counts` hold a `code:<outcome>` for each outcome that occurred.

    A reference is a program that checks the function which `Answer.context` begins; any one that passes will do. With
    `run_code` False nothing is run and the value is None. Raises UserError where code cannot be run as asked for.
    """
    taken = intake(answers)
    counts = taken.counts
    readable = [item for item in taken.items if any(map(_compiles, item.references))]
    counts["bad_reference"] = len(taken.items) - len(readable)
    counts["empty"] = sum(not item.text for item in readable)
    counts["scored"] = len(readable) if run_code else 0
    reason = nothing_scored(counts)
    words = {item.key: len(unicode_tokens(item.text)) for item in readable}
    outcomes: dict[str, Outcome] = {}
    if run_code and readable:
        require_sandbox(run_code)
        outcomes = _run_all(readable, run_code)
    passed = {key: float(outcome == "passed") for key, outcome in outcomes.items()}
    signature = _signature(run_code) if run_code else ""
    value = mean_value(passed.values(), signature=signature, reason=reason if run_code else NOT_RUN)
    tally = Counter(outcomes.values())
    return Scores(
        scorer="pass_at_1",
        signature=signature,
        values={"pass_at_1": value},
        extras={"mean_words": mean_words(words, reason=reason)},
        per_sample={"pass_at_1": passed, "mean_words": {key: float(count) for key, count in words.items()}},
        counts={**counts, **{f"code:{outcome}": tally[outcome] for outcome in _OUTCOMES if tally[outcome]}},
    )


def _compiles(reference: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            compile(reference, "<tests>", "exec")
        except (SyntaxError, ValueError):
            return False
    return True


def _run_all(items: Sequence[Item], run_code: RunCode) -> dict[str, Outcome]:
    """Run the items side by side, one a processor: each spends its time in a child process."""
    with ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, 16)) as pool:
        try:
            found = list(pool.map(lambda item: _outcome(item, run_code), items))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return {item.key: outcome for item, outcome in zip(items, found, strict=True)}


def _outcome(item: Item, run_code: RunCode) -> Outcome:
    """Return `passed` if the answer passes one of its test programs, else what came of the last."""
    outcome: Outcome = "syntax"
    for reference in filter(_compiles, item.references):
        entry = entry_point(item.context, reference)
        meant = programs(item.text, item.context, entry)
        outcome = run_program(meant, with_call(reference, entry), run_code=run_code) if meant else "syntax"
        if outcome == "passed":
            break
    return outcome
