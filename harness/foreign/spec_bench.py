"""Spec-Bench answer files made a run, so that whatever reads our own runs reads them (suites-and-scoring 10.1).

The token count is the file's own `new_tokens`, never the text's; time is end to end only. Every entry of
`accept_lengths` counts as a step, since a file does not tell which of them the prefill produced; our own exports say
it, and then the prefill's token belongs to no step. A turn's prompt is known by what came before it: the question and
the method's earlier answers, so that turns after differing answers are not paired.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from draftboard.errors import UserError
from draftboard.files import write_atomic
from draftboard.foreign.answers import AnswerFile, AnswerRow, AnswerTurn, Choice, MethodAnswers, by_method, read_answers
from draftboard.foreign.folders import refuse_existing, whole_folder
from draftboard.foreign.reading import unsurrogated
from draftboard.records import Cell, SampleRecord, Turn, sample_record
from draftboard.store import CELLS, create_run
from draftboard.suites import Suite, load_suite
from draftboard.suites.spec_bench import DOMAINS
from draftboard.wording import named

__all__ = ["META", "ImportedRun", "baseline_of", "import_spec_bench"]

META = "meta.jsonl"
"""Fields of the answer files that a run has no place for, one line per row."""

_SUITE = "spec_bench"
_DOMAIN_OF = {category: domain for domain, categories in DOMAINS.items() for category in categories}
_NO_CATEGORY = "uncategorised"
_NAMED = 5

CountTokens = Callable[[str], int]
"""Tokens that a tokenizer makes of a text, its special ones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """What an import came to, for a summary."""

    path: Path
    baseline: str
    """Empty where no method is plain decoding."""
    methods: tuple[MethodAnswers, ...]
    notes: tuple[str, ...]


def import_spec_bench(
    files: Sequence[Path],
    out: Path,
    *,
    baseline: str | None = None,
    questions: Path | None = None,
    count_tokens: CountTokens | None = None,
    tokenizer: str = "",
    hardware: str = "",
    model: str = "",
    finish: Callable[[Path], object] | None = None,
) -> ImportedRun:
    """Make folder `out` a run of these answer files; `finish` is called on it before it appears there.

    `questions` is Spec-Bench's question file, which brings prompts, references and scorers; `count_tokens` fills
    `text_tokens`, for figures that count the baseline as Spec-Bench does, and `tokenizer` is its name. Raises UserError
    for files that cannot be read, an unknown baseline, or an `out` that exists; SuiteError for the question file.
    """
    refuse_existing(out)
    read = [read_answers(path) for path in dict.fromkeys(files)]
    methods = by_method(read)
    chosen = baseline_of(methods, baseline)
    model, hardware, tokenizer = map(unsurrogated, (model, hardware, tokenizer))
    suite = load_suite(f"{_SUITE}@{questions}") if questions is not None else None
    samples, notes = _samples(methods, suite)
    notes = [
        *(note for answers in read for note in answers.file.notes),
        *(note for method in methods for note in method.notes),
        *_choice_notes(methods),
        *_unmatched(methods, chosen),
        *(f"{method.label} is marked as the baseline, but {chosen} was named" for method in _marked(methods, chosen)),
        *notes,
    ]
    if not chosen:
        notes.append(
            "no baseline is marked, and no method is plain decoding (one token in every step): no speedups; name it "
            "with --baseline"
        )
    cells = [cell for method in methods for cell in _cells(method, count_tokens)]
    plan = _plan(methods, chosen, suite, samples, model=model, tokenizer=tokenizer)
    plan["imported"] = {"format": "spec-bench", "files": [_describe(answers) for answers in read], "notes": notes}
    with whole_folder(out) as folder:
        write_atomic(folder / CELLS, _lines(cells))
        write_atomic(folder / META, _lines(_meta(methods)))
        create_run(folder, plan, {"hardware": hardware}, samples)
        if finish is not None:
            finish(folder)
    return ImportedRun(path=out, baseline=chosen, methods=tuple(methods), notes=tuple(notes))


def baseline_of(methods: Sequence[MethodAnswers], baseline: str | None) -> str:
    """Return the label of the baseline: the one named, else the one that its rows mark as such, else the one whose
    steps all give one token, else nothing.

    Names are not guessed by. Raises UserError for a name that no method has, for marks that contradict each other, and
    for several methods that are plain decoding.
    """
    labels = [method.label for method in methods]
    if baseline is not None:
        if baseline not in labels:
            raise UserError(f"no method is called {baseline!r}; there are: {named(labels)}", where="--baseline")
        return baseline
    marked = [method.label for method in _marked(methods)]
    torn = [method.label for method in _marked(methods) if len(method.marks) > 1]
    if torn or len(marked) > 1:
        several = [f"several methods are marked: {named(marked)}"] if len(marked) > 1 else []
        raise UserError(
            "the files do not agree on which answers are the baseline's",
            problems=(*several, *(f"{label}: marked in some of its rows only" for label in torn)),
            advice="Name the baseline with --baseline.",
        )
    if marked:
        return marked[0]
    # A method that its own file says is not the baseline may still have drafted nothing.
    plain = [method.label for method in methods if method.is_plain and False not in method.marks]
    if len(plain) > 1:
        raise UserError(
            f"several methods are plain decoding: {named(plain)}", advice="Name the baseline with --baseline."
        )
    return plain[0] if plain else ""


def _marked(methods: Sequence[MethodAnswers], but: str = "") -> list[MethodAnswers]:
    return [method for method in methods if True in method.marks and method.label != but]


def _samples(methods: Sequence[MethodAnswers], suite: Suite | None) -> tuple[list[SampleRecord], list[str]]:
    """Return a record per question that any method answers, in the order of ids, and what is to be told of them."""
    rows: dict[str, AnswerRow] = {}
    notes: list[str] = []
    for method in methods:
        for question, row in method.rows.items():
            first = rows.setdefault(question, row)
            if first.category != row.category:
                notes.append(
                    f"question {question}: category {row.category!r} for {method.label}, but {first.category!r} for "
                    f"{first.model_id}, which counts"
                )
    asked = {sample.sample_id: sample for sample in suite.samples} if suite is not None else {}
    unknown = [question for question in rows if question not in asked]
    if suite is not None and len(unknown) == len(rows):
        raise UserError(
            f"none of the {len(rows)} questions that the files answer is in {suite.source}",
            advice="Give the question file that the answers were made from.",
        )
    if suite is not None and unknown:
        notes.append(f"{len(unknown)} question(s) are not in {suite.source}: {_some(unknown)}")
    records = []
    for question, row in sorted(rows.items(), key=_order):
        turns = len(row.choices[0].turns)
        sample = asked.get(question)
        if sample is not None and len(sample.turns) != turns:
            notes.append(f"question {question}: {turns} answer(s) to {len(sample.turns)} turn(s)")
        records.append(_record(row) if sample is None else sample_record(_SUITE, sample))
    return records, notes


def _order(item: tuple[str, AnswerRow]) -> tuple[int, int, str]:
    question, row = item
    return (0, int(question), "") if row.whole else (1, 0, question)


def _record(row: AnswerRow) -> SampleRecord:
    category = row.category or _NO_CATEGORY
    return SampleRecord(
        key=f"{_SUITE}/{row.question_id}",
        suite=_SUITE,
        sample_id=row.question_id,
        domain=_DOMAIN_OF.get(category, category),
        category=category,
        turns=[""] * len(row.choices[0].turns),
    )


def _cells(method: MethodAnswers, count_tokens: CountTokens | None) -> Iterable[Cell]:
    for question, row in method.rows.items():
        for repeat, choice in zip(method.rounds(row), row.choices, strict=True):
            turns = [] if choice.failure else _turns(question, choice, count_tokens)
            yield Cell(
                method=method.label,
                sample=f"{_SUITE}/{question}",
                repeat=repeat,
                status="failed" if choice.failure else "ok",
                reason=choice.failure,
                turns=turns,
            )


def _turns(question: str, choice: Choice, count_tokens: CountTokens | None) -> list[Turn]:
    before = sha256(question.encode())
    turns = []
    for turn in choice.turns:
        turns.append(
            Turn(
                prompt_tokens=0,
                prompt_sha256=before.hexdigest()[:16],
                token_ids=[],
                text=turn.text,
                finish="",
                prefill_ns=None,
                first_ns=None,
                end_ns=round(turn.wall_time_s * 1e9),
                cpu_ns=None,
                first_cpu_ns=None,
                steps=_steps(turn),
                tokens=turn.new_tokens,
                prefill_emits=turn.prefill_emits,
                text_tokens=count_tokens(turn.text) if count_tokens is not None else None,
            )
        )
        before.update(b"\0" + turn.text.encode())
    return turns


def _steps(turn: AnswerTurn) -> dict[str, Any]:
    if turn.entries is None:
        return {}
    kept = list(turn.entries[turn.prefill_emits :])
    return {"accepted": [max(0, count - 1) for count in kept], "kept": kept}


def _plan(
    methods: Sequence[MethodAnswers],
    baseline: str,
    suite: Suite | None,
    samples: Sequence[SampleRecord],
    *,
    model: str,
    tokenizer: str,
) -> dict[str, Any]:
    """Return the plan as far as answer files tell it; what they do not is null."""
    counts: dict[str, int] = {}
    for sample in samples:
        counts[sample.domain] = counts.get(sample.domain, 0) + 1
    repeats = 1 + max(max(method.rounds(row)) for method in methods for row in method.rows.values())
    return {
        "model": model,
        "revision": None,
        "methods": [
            {"label": method.label, "method": method.label, "settings": {}, "lossless": None, "reference": ""}
            for method in methods
        ],
        "suites": [
            {
                "name": _SUITE,
                "source": suite.source if suite is not None else "",
                "content_hash": suite.content_hash if suite is not None else "",
                "licence": suite.licence if suite is not None else "unknown",
                "wording_version": suite.wording_version if suite is not None else 1,
                "samples": len(samples),
                "counts": counts,
                "notes": list(suite.notes) if suite is not None else [],
            }
        ],
        "limit": None,
        "max_new_tokens": None,
        "sampling": None,
        "seed": None,
        "repeats": repeats,
        "dtype": "",
        "device": "",
        "threads": None,
        "template": "",
        "stop": [],
        "warmup": "",
        "profile": False,
        "baseline": baseline or None,
        "tokenizer": tokenizer or None,
    }


def _choice_notes(methods: Sequence[MethodAnswers]) -> list[str]:
    most = max(len(row.choices) for method in methods for row in method.rows.values())
    return [
        f"{method.label}: {few} question(s) have fewer than the {most} answers that others have"
        for method in methods
        if (few := sum(len(row.choices) < most for row in method.rows.values()))
    ]


def _unmatched(methods: Sequence[MethodAnswers], baseline: str) -> list[str]:
    """Tell which questions only one side of a comparison answers."""
    base = next((method for method in methods if method.label == baseline), None)
    if base is None:
        return []
    notes = []
    for method in methods:
        lacking = [question for question in base.rows if question not in method.rows]
        extra = [question for question in method.rows if question not in base.rows]
        if lacking:
            notes.append(f"{method.label} lacks {len(lacking)} question(s) that {baseline} answers: {_some(lacking)}")
        if extra:
            notes.append(f"{method.label} answers {len(extra)} question(s) that {baseline} lacks: {_some(extra)}")
    return notes


def _some(questions: Sequence[str]) -> str:
    return ", ".join([*questions[:_NAMED], *(["…"] if len(questions) > _NAMED else [])])


def _describe(answers: AnswerFile) -> dict[str, Any]:
    return {"name": answers.file.name, "sha256": answers.file.sha256, "rows": len(answers.rows)}


def _meta(methods: Sequence[MethodAnswers]) -> Iterable[Mapping[str, Any]]:
    for method in methods:
        for question, row in method.rows.items():
            if row.meta:
                yield {"schema": 1, "method": method.label, "sample": f"{_SUITE}/{question}", "meta": row.meta}


def _lines(records: Iterable[Any]) -> bytes:
    return b"".join(msgspec.json.encode(record) + b"\n" for record in records)
