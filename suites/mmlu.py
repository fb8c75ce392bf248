"""MMLU: four-option questions of 57 subjects, asked in four ways; and its cut to the size of a Spec-Bench domain.

`explain` asks for reasons and is the way to measure speed, for speculation needs something to write. The other ways
measure accuracy alone: an answer of two or three tokens says nothing about decoding.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from draftboard.suites.errors import SuiteError
from draftboard.suites.mmlu_rows import LETTERS, SUBJECTS, TEST_ROWS, Question, read_dev, read_test
from draftboard.suites.request import Request
from draftboard.suites.sample import Raw, Sample, Suite
from draftboard.suites.wordings import (
    MMLU_ANSWER,
    MMLU_EXPLAIN,
    MMLU_HEADER,
    MMLU_LETTER,
    MMLU_QUESTION,
    WORDING_VERSION,
)

__all__ = ["BUDGETS", "MOST_SHOTS", "VARIANTS", "draw", "load"]

BUDGETS = {"explain": 1024, "letter": 16, "k-shot": 16, "loglik": 0}
"""Longest output of each variant in tokens; the first variant is the default."""

VARIANTS = tuple(BUDGETS)

MOST_SHOTS = 5
"""Examples that the development part has of every subject; so many stand before a question by default."""

_SMALL = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """How every question of one suite is asked."""

    suite: str
    variant: str
    examples: dict[str, tuple[str, ...]]
    """By subject, for the variants that are continued as they stand."""


def load(request: Request) -> Suite:
    """The suite `mmlu[/VARIANT][@PATH]`, or `mmlu_80` of the same form.

    The path is a file of the test part, a folder that holds it, or `hf://OWNER/NAME[@REVISION]`; without one the
    hub's `cais/mmlu` is read. `k-shot` and `loglik` also need the development part, unless `shots` is 0.

    Raises `SuiteError` for what is wrong with the files, for examples that are not there, for `shots` where it does
    not apply, and if questions of a subject are missing that `mmlu_80` takes.
    """
    variant = request.variant or VARIANTS[0]
    name = request.name if variant == VARIANTS[0] else f"{request.name}/{variant}"
    shots = _shots(request, variant)
    part = read_test(request.path)
    questions = part.questions
    notes = [*part.notes, *_extent(questions)]
    if request.name == "mmlu_80":
        questions = draw(questions, seed=request.settings.seed)
        notes.append(
            f"{_SMALL} questions over all {len(SUBJECTS)} subjects, drawn with seed {request.settings.seed}; no "
            "published set of 80"
        )
    content_hash = part.sha256
    examples: dict[str, tuple[str, ...]] = {}
    if shots is not None:
        examples, dev_hash, note = _examples(request.path, shots, questions, part.sha256)
        notes.append(note)
        # Other examples are another prompt.
        content_hash = sha256(f"{content_hash} {dev_hash} {shots}".encode()).hexdigest()
    form = _Form(suite=name, variant=variant, examples=examples)
    return Suite(
        name=name,
        samples=tuple(_sample(question, form) for question in questions),
        content_hash=content_hash,
        source=part.source,
        licence="MIT",
        wording_version=WORDING_VERSION,
        notes=tuple(notes),
    )


def draw(questions: Sequence[Question], *, seed: int) -> tuple[Question, ...]:
    """80 questions, in the order given: one of each of the 57 subjects, and a second of 23 of them.

    Subjects are ordered by sha256 of `"{seed}:{subject}"` (hex); the first 23 give two. Within a subject the lowest
    sha256 of `"{seed}:{id}"` goes first. Source: suites-and-scoring 4.1. Raises `SuiteError` naming the subjects
    with too few questions.
    """
    by_subject: dict[str, list[str]] = {subject: [] for subject in SUBJECTS}
    for question in questions:
        by_subject[question.subject].append(question.question_id)
    chosen: set[str] = set()
    problems = []
    for place, subject in enumerate(sorted(SUBJECTS, key=lambda subject: _hash(seed, subject))):
        wanted = 2 if place < _SMALL - len(SUBJECTS) else 1
        ids = sorted(by_subject[subject], key=lambda question_id: _hash(seed, question_id))
        if len(ids) < wanted:
            problems.append(f"{subject}: {wanted} needed, {len(ids)} there")
        chosen.update(ids[:wanted])
    if problems:
        raise SuiteError(
            f"mmlu_80 is drawn from all {len(SUBJECTS)} subjects, which these questions do not cover",
            problems=tuple(problems),
            advice="Use mmlu for a slice of the benchmark.",
        )
    return tuple(question for question in questions if question.question_id in chosen)


def _shots(request: Request, variant: str) -> int | None:
    """Examples before a question; None for the variants that have none. Raises `SuiteError`."""
    said = request.settings.shots
    if variant not in ("k-shot", "loglik"):
        if said is not None:
            raise SuiteError(
                f"{request.name}/{variant} takes no examples, but {said} are asked for",
                advice=f"Use {request.name}/k-shot or {request.name}/loglik, or leave out --shots.",
            )
        return None
    if said is not None and not 0 <= said <= MOST_SHOTS:
        raise SuiteError(f"{said} examples are asked for; MMLU has {MOST_SHOTS} of each subject", advice="Use 0 to 5.")
    return MOST_SHOTS if said is None else said


def _examples(
    path: str | None, shots: int, questions: Sequence[Question], test_hash: str
) -> tuple[dict[str, tuple[str, ...]], str, str]:
    """The first `shots` examples of every subject asked about, in the order of the file; its hash; and a note."""
    if not shots:
        return {}, "", "no examples before a question"
    part = read_dev(path)
    if part.sha256 == test_hash:
        raise SuiteError(
            f"{part.source}: the same rows as the test part, whose answers would stand in the examples",
            advice="Bring MMLU's dev part, or run with --shots 0.",
        )
    of_subject: dict[str, list[str]] = {}
    for example in part.questions:
        of_subject.setdefault(example.subject, []).append(f"{_continued(example)} {example.letter}")
    subjects = dict.fromkeys(question.subject for question in questions)
    problems = [
        f"{subject}: {len(of_subject.get(subject, []))}"
        for subject in subjects
        if len(of_subject.get(subject, [])) < shots
    ]
    if problems:
        raise SuiteError(
            f"{part.source}: {shots} examples are asked for, but some subjects have fewer",
            problems=tuple(problems),
            advice="Ask for fewer with --shots, or bring MMLU's whole dev part.",
        )
    examples = {subject: tuple(of_subject[subject][:shots]) for subject in subjects}
    many = "1 example" if shots == 1 else f"{shots} examples"
    return examples, part.sha256, f"{many} before each question, from {part.source}"


def _extent(questions: Sequence[Question]) -> list[str]:
    """What the reader has to know of a slice."""
    if len(questions) == TEST_ROWS:
        return []
    subjects = Counter(question.subject for question in questions)
    covered = "" if len(subjects) == len(SUBJECTS) else f", from {len(subjects)} of {len(SUBJECTS)} subjects"
    return [f"{len(questions):,} of the {TEST_ROWS:,} questions of MMLU's test part{covered}"]


def _sample(question: Question, form: _Form) -> Sample:
    subject = question.subject.replace("_", " ")
    raw = None
    if form.variant in ("k-shot", "loglik"):
        raw = Raw(header=MMLU_HEADER.format(subject=subject), examples=form.examples.get(question.subject, ()))
        turn = _continued(question)
    else:
        wording = MMLU_EXPLAIN if form.variant == "explain" else MMLU_LETTER
        turn = wording.format(subject=subject, question=_options(question))
    return Sample(
        sample_id=question.question_id,
        suite=form.suite,
        domain="mmlu",
        category=question.subject,
        group=SUBJECTS[question.subject],
        turns=(turn,),
        references=((question.letter,),),
        scorer="letter",
        options=question.choices,
        max_new_tokens=BUDGETS[form.variant],
        stop=("\n",) if form.variant == "k-shot" else (),
        raw=raw,
        choices=tuple(f" {letter}" for letter in LETTERS) if form.variant == "loglik" else (),
        timed=form.variant == "explain",
    )


def _options(question: Question) -> str:
    """The question and its four lines. Blanks around the stored texts are no part of them."""
    choices = (choice.strip() for choice in question.choices)
    return MMLU_QUESTION.format(question=question.text.strip(), **dict(zip(LETTERS, choices, strict=True)))


def _continued(question: Question) -> str:
    return MMLU_ANSWER.format(question=_options(question))


def _hash(seed: int, text: str) -> str:
    return sha256(f"{seed}:{text}".encode()).hexdigest()
