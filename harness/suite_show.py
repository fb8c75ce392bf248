"""`draftboard suite show`: what a suite holds, before anything is run on it. Free of torch."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from draftboard.errors import UserError
from draftboard.leaderboards.text import terminal_text
from draftboard.suites import Sample, Suite, SuiteSettings, limited, load_suite, settings_of, split
from draftboard.wording import counted

__all__ = ["describe_suite", "show_suite"]

_LONGEST = 600
"""Characters of a prompt that are printed; `--json` holds all of it."""


def show_suite(
    spec: str, *, prompts: int, shots: int | None, qa_references: str | None, seed: int, as_json: bool
) -> int:
    """Print a suite's description. Raises UserError or SuiteError for what cannot be shown."""
    if prompts < 0:
        raise UserError(f"--prompts must be 0 or more, not {prompts}")
    settings = SuiteSettings(shots=shots, qa_references=qa_references, seed=seed)
    unused = settings.said() - settings_of(spec)
    if unused:
        raise UserError(f"{spec} does not use {', '.join(sorted(unused))}")
    suite = load_suite(spec, settings)
    chosen = limited(suite, prompts, seed).samples if prompts else ()
    report = {**describe_suite(suite, seed), "prompts": [_describe_sample(sample) for sample in chosen]}
    if as_json:
        print(json.dumps(report, allow_nan=False, indent=1))
    else:
        _print(report)
    return 0


def describe_suite(suite: Suite, seed: int) -> dict[str, Any]:
    """Return origin, licence, hash, notes and counts as plain JSON."""
    parts = split(suite, seed=seed)
    calibration = set(parts.calibration)
    domains = []
    for domain in suite.domains:
        inside = [sample for sample in suite.samples if sample.domain == domain]
        domains.append(
            {
                "domain": domain,
                "samples": len(inside),
                "turns": sum(len(sample.turns) for sample in inside),
                "calibration": sum(sample.sample_id in calibration for sample in inside),
                "categories": dict(Counter(sample.category for sample in inside)),
                "scorers": _words(sample.scorer for sample in inside),
                "with_references": sum(any(sample.references) for sample in inside),
                "max_new_tokens": sorted({s.max_new_tokens for s in inside if s.max_new_tokens is not None}),
                "timed": all(sample.timed for sample in inside),
            }
        )
    return {
        "name": suite.name,
        "source": suite.source,
        "licence": suite.licence,
        "sha256": suite.content_hash,
        "wording_version": suite.wording_version,
        "notes": list(suite.all_notes),
        "samples": len(suite.samples),
        "domains": domains,
    }


def _words(values: Any) -> dict[str, int]:
    return {str(value): count for value, count in Counter(value for value in values if value).items()}


def _describe_sample(sample: Sample) -> dict[str, Any]:
    raw = sample.raw
    return {
        "id": sample.sample_id,
        "domain": sample.domain,
        "category": sample.category,
        "system": sample.system,
        "turns": list(sample.turns),
        "references": [list(references) for references in sample.references],
        "header": raw.header if raw else "",
        "examples": list(raw.examples) if raw else [],
    }


def _print(report: dict[str, Any]) -> None:
    print(terminal_text(f"{report['name']} · {report['source']} · {counted(report['samples'], 'sample')}"))
    print(terminal_text(f"licence: {report['licence']}"))
    print(f"sha256: {report['sha256']}   wording: version {report['wording_version']}")
    for note in report["notes"]:
        print(f"note: {terminal_text(note)}")
    print()
    for domain in report["domains"]:
        print(terminal_text(_domain_line(domain)))
    for sample in report["prompts"]:
        print("\n" + terminal_text(f"--- {sample['id']} · {sample['domain']} · {sample['category']}"))
        blocks = [("system", [sample["system"] or ""]), ("header", [sample["header"]]), ("example", sample["examples"])]
        for title, texts in (*blocks, ("turn", sample["turns"])):
            _print_texts(title, texts)
        for number, references in enumerate(sample["references"], 1):
            if references:
                print(f"[references of turn {number}] {_shortened(' | '.join(references))}")


def _domain_line(domain: dict[str, Any]) -> str:
    scorers = ", ".join(f"{name} ({count})" for name, count in domain["scorers"].items()) or "unscored"
    longest = max(domain["max_new_tokens"], default=None)
    at_most = f", at most {counted(longest or 0, 'new token')}"
    budget = "" if longest is None else at_most if longest else ", answered by likelihood"
    categories = domain["categories"]
    more = f", {len(categories):,} categories" if len(categories) > 1 else ""
    timed = "" if domain["timed"] else ", quality only"
    return (
        f"{domain['domain']}: {counted(domain['samples'], 'sample')} ({domain['calibration']} for calibration), "
        f"{counted(domain['turns'], 'turn')}{more}, {scorers}, {domain['with_references']} with references"
        f"{budget}{timed}"
    )


def _print_texts(title: str, texts: Sequence[str]) -> None:
    for number, text in enumerate(texts, 1):
        if text:
            print(f"[{title} {number}]\n{_shortened(text)}" if len(texts) > 1 else f"[{title}]\n{_shortened(text)}")


def _shortened(text: str) -> str:
    lines = [terminal_text(line) for line in text[:_LONGEST].split("\n")]
    rest = counted(len(text) - _LONGEST, "more character")
    return "\n".join(lines) + (f" … ({rest})" if len(text) > _LONGEST else "")
