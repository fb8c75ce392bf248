"""`draftboard judge`: asks somebody's judge about a run's open answers and prints its marks, apart from all tables."""

import json
import sys
from pathlib import Path
from typing import Any

from draftboard.errors import UserError
from draftboard.judge import Judgement, ask_command, ask_endpoint, describe_judge, judge_run, summary
from draftboard.leaderboards.text import terminal_text
from draftboard.scored import domain_labels
from draftboard.store import read_run
from draftboard.wording import counted

__all__ = ["judge_command"]

_LONGEST_S = 86_400


def judge_command(
    source: Path,
    *,
    name: str,
    command: str | None,
    endpoint: str | None,
    against: str,
    scored_too: bool,
    timeout_s: float,
    as_json: bool,
) -> int:
    """Judge a run. Returns 1 if some question got no mark."""
    from draftboard.analysis import analyse

    if (command is None) == (endpoint is None):
        raise UserError("a judge is either a --command or an --endpoint", advice="Give one of them.")
    if not name.strip():
        raise UserError("the judge needs a name to be stored under", advice="Add --name NAME.")
    if any("\ud800" <= character <= "\udfff" for character in name):
        raise UserError("the judge's name is not UTF-8 text, which its marks could not be stored under")
    if not 0 < timeout_s <= _LONGEST_S:
        raise UserError(f"--timeout must be above 0 and at most {_LONGEST_S:,}, not {timeout_s:g}")
    judge = ask_command(command, timeout_s) if command is not None else ask_endpoint(endpoint or "", timeout_s)
    run = read_run(source)
    equal = [method.method for method in analyse(run).methods if method.output == "identical"]
    for method in equal:
        print(f"draftboard: {terminal_text(method)} wrote what the baseline wrote: not judged", file=sys.stderr)
    judged = judge_run(
        run,
        judge,
        name=name,
        made_with=describe_judge(command=command, endpoint=endpoint),
        against=against,
        scored_too=scored_too,
        identical=equal,
        tell=_tell,
    )
    rows = summary(judged.found, domain_labels(run.samples))
    if judged.asked or judged.kept:
        now, before = counted(judged.asked, "question"), counted(judged.kept, "mark")
        print(f"draftboard: {now} asked now, {before} kept from earlier calls", file=sys.stderr)
    if as_json:
        counts = {"asked": judged.asked, "kept": judged.kept}
        head = {"judge": name, "against": against or None, **counts}
        print(json.dumps({**head, "results": rows}, allow_nan=False, indent=1))
    else:
        for row in rows:
            print(_line(row))
        if not rows:
            print(
                "nothing to judge: every answer left is what the baseline wrote, or of a sample with a scorer "
                "(--scored-too judges these as well)"
            )
    return 1 if any(row["failed"] for row in rows) else 0


def _tell(made: Judgement) -> None:
    if made.failure:
        print(f"draftboard: {made.method} on {made.sample}: no mark ({terminal_text(made.failure)})", file=sys.stderr)


def _line(row: dict[str, Any]) -> str:
    head = terminal_text(f"{row['method']} · {row['domain']}: ")
    failed = f", {row['failed']} without a mark" if row["failed"] else ""
    if "won" in row:
        counts = f"won {row['won']}, lost {row['lost']}, tied {row['tied']} against {terminal_text(row['against'])}"
        return f"{head}{counts} (n={row['n']}{failed})"
    mean = "n/a" if row["mean"] is None else f"{row['mean']:.2f} of 10"
    turns = " (by turn " + ", ".join(f"{mark:.2f}" for mark in row["by_turn"]) + ")" if len(row["by_turn"]) > 1 else ""
    return f"{head}{mean}{turns} (n={row['n']}{failed})"
