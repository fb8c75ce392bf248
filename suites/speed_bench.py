"""SPEED-Bench: 880 prompts in eleven domains, or 1,536 prompts of one length in three tiers of entropy.

The benchmark may be used for evaluation only and draws on sources that may not be passed on, so nothing of it is
shipped or fetched: a user runs one of its two prepare programs and points to what that wrote. Rows that such a program
left as they were published hold a placeholder instead of a prompt; a file with any is refused, for its figures would
be those of another text.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from draftboard.suites.errors import SuiteError, suggestion
from draftboard.suites.fields import check_question
from draftboard.suites.hub import PREFIX, hub_place, hub_rows
from draftboard.suites.kinds import SPEED_FIELDS, refuse_other
from draftboard.suites.request import Request
from draftboard.suites.rows import Fields, RowFile, checked, kind_of, read_rows
from draftboard.suites.sample import Sample, Suite

__all__ = ["DOMAINS", "LICENCE", "PLACEHOLDER", "TIERS", "VARIANTS", "load"]

VARIANTS = ("qualitative", "throughput_1k", "throughput_2k", "throughput_8k", "throughput_16k", "throughput_32k")
"""The benchmark's configurations; the first is the default. Lengths count `o200k_base` tokens, 1k being 1,000."""

DOMAINS = (
    "coding", "humanities", "math", "multilingual", "qa", "rag", "reasoning", "roleplay", "stem", "summarization",
    "writing",
)  # fmt: skip
"""Categories of `qualitative`, 80 rows each, in the order of T2D's columns."""

TIERS = ("low_entropy", "mixed", "high_entropy")
"""Categories of every throughput configuration, 512 rows each."""

LICENCE = "NVIDIA Evaluation Dataset License (each source keeps its own terms)"

PLACEHOLDER = "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING SPECDEC_BENCH"
"""What a turn starts with in published rows whose text may not be redistributed."""

_TEMPLATE_FIELDS = {
    "cnn_dailymail": ("article",),
    "livecodebench": ("question", "starter_code"),
    "code_contests": ("question",),
    "opus-100": ("question",),
    "ChatRAG-Bench": ("context", "question"),
    "MMLU-Pro": ("subject",),
    "RoleBench": ("role_name", "role_description_and_catchphrases"),
    "CoSER": (
        "character", "book_name", "character_profile", "scenario", "other_character_profiles_str", "motivation",
    ),
}  # fmt: skip
"""Fields of the templates that a prepare program fills, by what the row's `source` contains."""

_FULL_TEXTS = (
    "bamboo", "cais/hle", "mt-bench-101", "adaleval", "humanevalpack", "mmath", "eq-bench", "writing", "spec-bench",
    "mcif", "repobench", "lca-project-level",
)  # fmt: skip
"""Sources without a template, whose own text may hold anything between braces: code above all."""

_CODE = ("coding", "low_entropy")
_SHOWN = 5


def load(request: Request) -> Suite:
    """The suite `speed_bench[/VARIANT]@PATH` from a file or folder that a prepare program wrote.

    A folder is searched for `VARIANT/test.parquet`, `speed/VARIANT/test.parquet`, `VARIANT.parquet`, `VARIANT.jsonl`
    and `test.parquet`, in this order; `hf://OWNER/NAME[/CONFIGURATION]` names a data set of prepared rows. Where no
    variant is asked for, the one that the file, its folder or the configuration is named after is taken, else
    `qualitative`. Domain and category are the row's `category`; nothing is scored. Raises `SuiteError` with every
    fault of the file.
    """
    path = request.path or ""
    variant = _variant(request.variant, path)
    name = request.name if variant == VARIANTS[0] else f"{request.name}/{variant}"
    file = _read(path, variant)
    refuse_other(file, request.name)
    domains = DOMAINS if variant == VARIANTS[0] else TIERS
    _check_kind(file, variant, domains)
    reader = _Reader(name, domains, file)
    advice = _how_to_prepare(variant)
    forms = (("question_id", "category", "turns"), ("question_id", "category", "messages"))
    samples = checked(file, reader.sample, forms=forms, advice=advice, plural="prompts")
    return Suite(
        name=name,
        samples=tuple(sorted(samples, key=lambda sample: domains.index(sample.domain))),
        content_hash=file.sha256,
        source=file.name,
        licence=LICENCE,
        notes=(*file.notes, *_notes(file, samples, domains, reader.answers_dropped)),
    )


def _read(path: str, variant: str) -> RowFile:
    if path.startswith(PREFIX):
        place = hub_place(path, usual_config=variant)
        return hub_rows(place, suite="speed_bench", offline=_how_to_prepare(variant))
    return read_rows(
        path,
        what="SPEED-Bench file",
        files=(
            f"{variant}/test.parquet",
            f"speed/{variant}/test.parquet",
            f"{variant}.parquet",
            f"{variant}.jsonl",
            "test.parquet",
        ),
    )


def _variant(said: str | None, path: str) -> str:
    """The variant asked for, else the only one that the nearest telling name of the path mentions."""
    place = Path(path).absolute()
    found = next(filter(None, map(_mentioned, (place.name, place.parent.name))), set())
    named = next(iter(found)) if len(found) == 1 else None
    if said is not None and named not in (None, said):
        raise SuiteError(
            f"{path}: named after {named}, but {said} was asked for",
            advice=f"Use speed_bench/{named}@PATH, or a path that does not mention another configuration.",
        )
    return said or named or VARIANTS[0]


def _mentioned(name: str) -> set[str]:
    words = re.sub(r"[-_.\s]+", "_", name.lower())
    return {variant for variant in VARIANTS if re.search(rf"(?<![a-z0-9]){variant}(?![a-z0-9])", words)}


def _check_kind(file: RowFile, variant: str, domains: tuple[str, ...]) -> None:
    """Refuse a file all of whose rows are of the other kind, which row by row would be a thousand faults."""
    found = {row.fields.get("category") for row in file.rows if isinstance(row.fields.get("category"), str)}
    other = TIERS if domains is DOMAINS else DOMAINS
    if found and found <= set(other):
        better = "throughput_1k (or another length)" if domains is DOMAINS else VARIANTS[0]
        raise SuiteError(
            f"{file.shown}: categories of another configuration than {variant} ({', '.join(sorted(map(str, found)))})",
            advice=f"Use speed_bench/{better}@PATH",
        )


class _Reader:
    """Makes samples of rows; knows how many rows of the file no prepare program has filled."""

    def __init__(self, suite: str, domains: tuple[str, ...], file: RowFile) -> None:
        self.answers_dropped = 0
        self._suite = suite
        self._domains = domains
        self._unfilled = sum(bool(_unfilled(row.fields)) for row in file.rows)
        self._told = 0

    def sample(self, row: Fields) -> Sample:
        """The sample of a row, whose problems are kept in it."""
        category = row.fields.get("category")
        record = {**row.fields, "turns": _decoded(row)} if "turns" in row.fields else row.fields
        question, problems = check_question(record, row.line)
        for what in problems:
            row.problem(what)
        sample_id = question.question_id if question else str(row.fields.get("question_id"))
        if row.has("question_id"):
            row.once("question_id", sample_id)
        if category is None:
            row.problem("no `category`")
        elif isinstance(category, str) and category.strip() and category not in self._domains:
            row.problem(f"unknown category {category!r}; {suggestion(category, self._domains)}")
        for key in SPEED_FIELDS:
            if isinstance(row.fields.get(key), list | Mapping):
                row.problem(f"`{key}` is {kind_of(row.fields[key])}; it must be a string")
        self._tell_unfilled(row, sample_id)
        if question is None:
            return _STAND_IN
        self.answers_dropped += question.answers_dropped
        return Sample(
            sample_id=sample_id,
            suite=self._suite,
            domain=str(category),
            category=str(category),
            system=question.system,
            turns=question.turns,
            meta={key: row.fields[key] for key in SPEED_FIELDS if row.has(key)},
        )

    def _tell_unfilled(self, row: Fields, sample_id: str) -> None:
        what = _unfilled(row.fields)
        if not what:
            return
        # Half the published rows are placeholders: the first few and their number say all.
        self._told += 1
        if self._told <= _SHOWN:
            more = self._unfilled - _SHOWN
            rest = f" (and in {more} more)" if self._told == _SHOWN and more > 0 else ""
            row.problem(f"{what} in question {sample_id}{rest}")


_STAND_IN = Sample(sample_id="", suite="", domain="", category="", turns=("",))
"""Returned for a row with problems, of which `checked` uses none."""


def _decoded(row: Fields) -> object:
    """The row's `turns`; a string is taken as the JSON that a list was written as."""
    value = row.fields["turns"]
    if not isinstance(value, str):
        return value
    turns = _json_list(value)
    if turns is None:
        row.problem("`turns` is a string, but no JSON list of strings")
        return ["-"]
    return turns


def _json_list(text: str) -> list[object] | None:
    try:
        value = json.loads(text)
        # A half surrogate may hide in an escape of the inner JSON.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _unfilled(fields: Mapping[str, object]) -> str:
    """What shows that no prepare program has filled this row; empty if nothing does."""
    turns = list(_texts(fields))
    if any(turn.lstrip().startswith(PLACEHOLDER) for turn in turns):
        return "a placeholder instead of the prompt"
    names = _field_names(str(fields.get("source") or ""), fields.get("category"))
    # A brace after a letter, a backslash, a dollar or another brace is LaTeX, a shell variable or an escape.
    found = names and re.search(rf"(?<![\w\\${{}}])\{{({'|'.join(names)})\}}(?!\}})", "\n".join(turns))
    return f"the unfilled field {{{found.group(1)}}}" if found else ""


def _field_names(source: str, category: object) -> tuple[str, ...]:
    lower = source.lower()
    for part, names in _TEMPLATE_FIELDS.items():
        if part.lower() in lower:
            return names
    if category in _CODE or any(part in lower for part in _FULL_TEXTS):
        return ()
    return tuple(dict.fromkeys(name for names in _TEMPLATE_FIELDS.values() for name in names))


def _texts(fields: Mapping[str, object]) -> Iterable[str]:
    turns = fields.get("turns")
    values = _json_list(turns) if isinstance(turns, str) else turns
    if isinstance(values, list):
        yield from (value for value in values if isinstance(value, str))
    messages = fields.get("messages")
    if isinstance(messages, list):
        contents = [message.get("content") for message in messages if isinstance(message, Mapping)]
        yield from (content for content in contents if isinstance(content, str))


def _how_to_prepare(variant: str) -> str:
    return (
        f"Make the file with `python3 prepare_data.py --dataset speed --config {variant}` (NVIDIA/Model-Optimizer, "
        f"examples/specdec_bench) or `python3 prepare.py --config {variant} --output_dir DIR` (NVIDIA-NeMo/Skills, "
        "nemo_skills/dataset/speed-bench). Both exit with 0 even where a source could not be read."
    )


def _notes(file: RowFile, samples: tuple[Sample, ...], domains: tuple[str, ...], answers_dropped: int) -> Iterable[str]:
    stored = {"turns", "messages"} & set(file.columns)
    if stored == {"turns"}:
        yield "prompts are stored as specdec_bench's prepare_data.py writes them (`turns`)"
    elif stored == {"messages"}:
        yield "prompts are stored as NeMo-Skills' prepare.py writes them (`messages`)"
    else:
        yield "prompts are stored as neither prepare program writes them (`turns` and `messages` both occur)"
    if answers_dropped:
        yield f"{answers_dropped} assistant messages are not used: each method gives its own answers"
    published = 80 if domains is DOMAINS else 512
    counts = Counter(sample.domain for sample in samples)
    other = [f"{domain} {counts[domain]}" for domain in domains if counts[domain] != published]
    if other:
        yield (
            f"{len(samples)} prompts, where the published configuration has {published * len(domains):,}: "
            f"{', '.join(other)} instead of {published} each; figures are not those of the whole configuration"
        )
