"""Rows of MMLU in the forms that are about: where its test and development parts lie, and what one row means.

The development part holds the examples that stand before a question. It is found by name, beside the test part: a
path that a user gives is that of the test part or of a folder with both.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Literal

from draftboard.suites.errors import SuiteError
from draftboard.suites.hub import PREFIX, hub_place, hub_rows
from draftboard.suites.kinds import refuse_other
from draftboard.suites.rows import Fields, RowFile, checked, kind_of, read_rows

__all__ = ["GROUPS", "HUB", "LETTERS", "SUBJECTS", "TEST_ROWS", "MmluPart", "Question", "read_dev", "read_test"]

GROUPS: dict[str, tuple[str, ...]] = {
    "stem": (
        "abstract_algebra", "astronomy", "college_biology", "college_chemistry", "college_computer_science",
        "college_mathematics", "college_physics", "computer_security", "conceptual_physics", "electrical_engineering",
        "elementary_mathematics", "high_school_biology", "high_school_chemistry", "high_school_computer_science",
        "high_school_mathematics", "high_school_physics", "high_school_statistics", "machine_learning",
    ),
    "humanities": (
        "formal_logic", "high_school_european_history", "high_school_us_history", "high_school_world_history",
        "international_law", "jurisprudence", "logical_fallacies", "moral_disputes", "moral_scenarios", "philosophy",
        "prehistory", "professional_law", "world_religions",
    ),
    "social_sciences": (
        "econometrics", "high_school_geography", "high_school_government_and_politics", "high_school_macroeconomics",
        "high_school_microeconomics", "high_school_psychology", "human_sexuality", "professional_psychology",
        "public_relations", "security_studies", "sociology", "us_foreign_policy",
    ),
    "other": (
        "anatomy", "business_ethics", "clinical_knowledge", "college_medicine", "global_facts", "human_aging",
        "management", "marketing", "medical_genetics", "miscellaneous", "nutrition", "professional_accounting",
        "professional_medicine", "virology",
    ),
}  # fmt: skip
"""The benchmark's own four groups of its 57 subjects."""

SUBJECTS = {subject: group for group, subjects in GROUPS.items() for subject in subjects}
"""Group by subject."""

TEST_ROWS = 14_042
"""Questions of the whole test part."""

HUB = "cais/mmlu"
"""The data set that is read where no path is given."""

LETTERS = ("A", "B", "C", "D")

_HEADLESS = ("question", *LETTERS, "answer")
_FORMS = (("question", "choices", "answer"), _HEADLESS, ("input", *LETTERS, "target"))
_ENDINGS = (".jsonl", ".ndjson", ".json", ".parquet", ".csv", ".tsv", ".gz")
_OFFLINE = (
    "Without a network use --suite mmlu@PATH with a file of MMLU's test part, or a folder with test and dev part."
)
_ADVICE = "MMLU has four options a question; MMLU-Pro, with up to ten, is another benchmark."

_Part = Literal["test", "dev"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question of MMLU."""

    question_id: str
    """As the row gives it, else `SUBJECT/N`, N counting the subject's rows from 0."""
    subject: str
    text: str
    choices: tuple[str, ...]
    """The four options as stored."""
    letter: str
    """Of the right option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MmluPart:
    """All questions of the test or development part that were found."""

    questions: tuple[Question, ...]
    """In the order of the file; of several files in the order of their names."""
    sha256: str
    """Of the file; of several the hash over their hashes."""
    source: str
    notes: tuple[str, ...]


def read_test(path: str | None) -> MmluPart:
    """The test part at `path`: a file, a folder that holds it, `hf://…`, or that of `HUB` where it is None.

    Raises `SuiteError` with every fault of a file, or with the names that were looked for.
    """
    if path is None or path.startswith(PREFIX):
        return _from_hub(path, "test")
    place = _home(path)
    part = _part(_local(_test_files(place)))
    words = re.split(r"[^a-z]+", place.name.lower())
    if "dev" in words and "test" not in words and not place.is_dir():
        raise SuiteError(
            f"{place}: named after MMLU's dev part, which holds the examples, not the questions",
            advice="Name the file of the test part, or a folder with both.",
        )
    return part


def read_dev(path: str | None) -> MmluPart:
    """The development part that belongs to the test part at `path`. Raises `SuiteError` as `read_test` does."""
    if path is None or path.startswith(PREFIX):
        return _from_hub(path, "dev")
    return _part(_local(_dev_files(_home(path))))


def _from_hub(path: str | None, part: _Part) -> MmluPart:
    place = hub_place(path or f"{PREFIX}{HUB}", split=part, usual_config="all")
    file = hub_rows(place, suite="mmlu", offline=_OFFLINE)
    # Some copies have a configuration for each subject and no column that says it.
    return _part([file], subject=_subject_of(place.config or ""))


def _home(path: str) -> Path:
    return Path(path).expanduser() if path.startswith("~/") else Path(path)


def _local(files: Iterable[Path]) -> list[RowFile]:
    return [read_rows(file, what="MMLU file", headless=_HEADLESS) for file in files]


def _part(files: Sequence[RowFile], *, subject: str = "") -> MmluPart:
    reader = _Reader()
    questions = [question for file in files for question in reader.questions(file, subject or _subject_of(file.shown))]
    hashes = [file.sha256 for file in files]
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return MmluPart(
        questions=tuple(questions),
        sha256=hashes[0] if len(hashes) == 1 else sha256("\n".join(hashes).encode()).hexdigest(),
        source=f"{files[0].name}{more}",
        notes=tuple(dict.fromkeys(note for file in files for note in file.notes)),
    )


def _test_files(place: Path) -> list[Path]:
    if not place.is_dir():
        return [place]
    found, tried = _inside(place, "test")
    if not found:
        raise SuiteError(
            f"{place}: this directory holds no file of MMLU's test part",
            problems=tuple(tried),
            advice=f"Name the file itself after the @; it ends in {', '.join(_ENDINGS)}",
        )
    return found


def _dev_files(place: Path) -> list[Path]:
    """Files of the development part: in the folder, else beside the test files under the same name with `dev`."""
    found, tried = _inside(place, "dev") if place.is_dir() else ([], [])
    for test in [] if found else _test_files(place):
        beside, more = _beside(test)
        found += beside
        tried += [] if beside else more
    if not found:
        raise SuiteError(
            f"{place}: the examples of MMLU's dev part were not found",
            problems=tuple(dict.fromkeys(tried)),
            advice="Put the dev file beside the test file, or run with --shots 0.",
        )
    return found


def _beside(test: Path) -> tuple[list[Path], list[str]]:
    """The development file of one test file, and the names it was looked for under; any number may differ."""
    name = re.sub(r"(?i)(?<![a-z])test(?![a-z])", "dev", test.name)
    if name == test.name:
        return [], [f"the name {test.name} holds no `test` that `dev` could stand for"]
    folders = [test.parent, *([test.parent.parent / "dev"] if test.parent.name == "test" else [])]
    for folder in folders:
        found = [file for file in _data_files(folder) if _masked(file.name) == _masked(name)]
        if found:
            return _unambiguous(folder, found), []
    return [], [f"tried: {folder / _masked(name)}" for folder in folders]


def _inside(folder: Path, part: _Part) -> tuple[list[Path], list[str]]:
    """The files of a part in a folder, in the places where the published copies have them; and what was tried."""
    tried = []
    for place in (folder, folder / part, folder / "all", folder / "data", folder / "data" / part):
        whole = place != folder and place.name == part
        found = [file for file in _data_files(place) if whole or part in re.split(r"[^a-z]+", file.name.lower())]
        if found:
            return _unambiguous(place, found), []
        tried.append(f"tried: {place / '*' if whole else place / f'*{part}*'}")
    return [], tried


def _data_files(folder: Path) -> list[Path]:
    try:
        files = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise SuiteError(f"{folder}: cannot be read ({error.strerror or error})") from error
    data = [file for file in files if file.suffix.lower() in _ENDINGS and file.is_file()]
    # Some systems leave a hidden twin beside every file that they copy.
    return [file for file in data if not file.name.startswith(".")]


def _unambiguous(folder: Path, files: list[Path]) -> list[Path]:
    """One file, one for each subject, or the numbered pieces of one; anything else has to be chosen by the user."""
    pieces = len({_masked(file.name) for file in files}) == 1 and all("-of-" in file.name for file in files)
    subjects = {_subject_of(str(file)) for file in files}
    if len(files) == 1 or pieces or (len(subjects) == len(files) and "" not in subjects):
        return files
    shown = tuple(file.name for file in files[:10])
    raise SuiteError(f"{folder}: {len(files)} files could be meant", problems=shown, advice="Name one after the @.")


def _masked(name: str) -> str:
    return re.sub(r"[0-9]+", "*", name)


def _subject_of(path: str) -> str:
    """The subject that a file or its folder is named after; empty if none is."""
    place = Path(path)
    stem = re.sub(r"[_-](test|dev)$", "", place.name.partition(".")[0])
    return next((name for name in map(_normal, (stem, place.parent.name)) if name in SUBJECTS), "")


def _normal(subject: str) -> str:
    return re.sub(r"[\s-]+", "_", subject.strip().lower())


class _Reader:
    """Makes questions of rows; numbers those of each subject over all files."""

    def __init__(self) -> None:
        self._seen: Counter[str] = Counter()
        self._unknown: set[str] = set()

    def questions(self, file: RowFile, subject: str) -> tuple[Question, ...]:
        """The questions of one file, of `subject` where a row has none. Raises `SuiteError` with every fault of it."""
        refuse_other(file, "mmlu")
        self._unknown.clear()
        separated = bool(re.search(r"(?i)\.[ct]sv(\.gz)?$", file.shown))
        return checked(file, lambda row: self._question(row, subject, separated), forms=_FORMS, advice=_ADVICE)

    def _question(self, row: Fields, subject_of_file: str, separated: bool) -> Question:
        subject = self._subject(row, subject_of_file)
        number = self._seen[subject]
        self._seen[subject] += 1
        return Question(
            question_id=row.identifier("id", default=f"{subject}/{number}"),
            subject=subject,
            text=row.text("question", "input"),
            choices=_choices(row, separated),
            letter=_letter(row),
        )

    def _subject(self, row: Fields, subject_of_file: str) -> str:
        subject = _normal(row.text("subject", default=subject_of_file))
        if not subject and not row.has("subject"):
            row.problem("no `subject`, and no subject of MMLU that the file is named after")
        elif subject and subject not in SUBJECTS and subject not in self._unknown:
            # A file of another benchmark would give one problem for every row.
            self._unknown.add(subject)
            near = get_close_matches(subject, SUBJECTS, n=1)
            row.problem(f"{subject!r} is none of MMLU's 57 subjects" + (f"; did you mean {near[0]}?" if near else ""))
        return subject


def _choices(row: Fields, separated: bool) -> tuple[str, ...]:
    """Four texts; one may be blank, as an empty cell is among separated values."""
    if row.has("choices"):
        value = row.fields["choices"]
        values = list(value) if isinstance(value, list | tuple) else None
        if values is None or len(values) != 4:
            shown = kind_of(value) if values is None else f"a list of {len(values)}"
            row.problem(f"`choices` is {shown}; it must be a list of four texts")
            return ()
        names = [f"entry {place} of `choices`" for place in range(1, 5)]
    else:
        values = [row.fields.get(letter, "" if separated else None) for letter in LETTERS]
        names = [f"`{letter}`" for letter in LETTERS]
    for name, choice in zip(names, values, strict=True):
        if not isinstance(choice, str):
            row.problem(f"{name} is {kind_of(choice)}; it must be a string")
    return tuple(choice for choice in values if isinstance(choice, str))


def _letter(row: Fields) -> str:
    given = [key for key in ("answer", "target", "answer_letter") if row.has(key)]
    if not given:
        row.problem("no `answer` (nor `target`)")
        return ""
    letters = {}
    for key in given:
        letter = _as_letter(row.fields[key])
        if letter is None:
            shown = repr(row.fields[key]) if isinstance(row.fields[key], str) else kind_of(row.fields[key])
            row.problem(f"`{key}` is {shown:.60}; it must be a number from 0 to 3 or a letter from A to D")
        else:
            letters[key] = letter
    if len(set(letters.values())) > 1:
        row.problem(" but ".join(f"`{key}` says {letter}" for key, letter in letters.items()))
    return next(iter(letters.values()), "")


def _as_letter(value: object) -> str | None:
    if isinstance(value, str):
        text = value.strip().upper()
        return text if text in LETTERS else LETTERS[int(text)] if text in ("0", "1", "2", "3") else None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 4:
        return LETTERS[value]
    return None
