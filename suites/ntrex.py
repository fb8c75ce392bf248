"""NTREX-128, German to English: sentences of news, read from pairs in rows or from the published pair of text files.

English is the original and German its translation by people, so that scores are higher than on German news.
"""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from draftboard.suites.download import Published, download
from draftboard.suites.errors import SuiteError
from draftboard.suites.hub import PREFIX
from draftboard.suites.kinds import refuse_other
from draftboard.suites.parsing import Row, decoded
from draftboard.suites.request import Request
from draftboard.suites.rows import Fields, RowFile, checked, read_rows
from draftboard.suites.sample import Sample, Suite
from draftboard.suites.source import Source, rows_of, suite_of
from draftboard.suites.wordings import NTREX_DE_EN

__all__ = ["SOURCE", "load"]

_REPOSITORY = "https://raw.githubusercontent.com/MicrosoftTranslator/NTREX/8561f6a622db9edad1217683e5c83daefd8bb2bf"
_GERMAN, _ENGLISH, _DOCUMENTS = (
    Published(url=f"{_REPOSITORY}/{path}", file=path.rpartition("/")[2], version="8561f6a622db")
    for path in ("NTREX-128/newstest2019-ref.deu.txt", "NTREX-128/newstest2019-src.eng.txt", "DOCUMENT_IDS.tsv")
)

SOURCE = Source(
    what="NTREX file",
    files=("ntrex_deu_eng_298.jsonl", "test.jsonl"),
    published=_GERMAN,
    rows=1997,
    forms=(("de", "en"), ("translation",)),
    licence="CC BY-SA 4.0",
)


def load(request: Request) -> Suite:
    """The suite `ntrex_de_en[@PATH]`. Raises `SuiteError` with every fault.

    Rows have `de` and `en`, or a `translation` that holds both, as sets of translations on the hub have. A folder may
    instead hold the published text files, whose lines belong together by number.
    """

    def sample(row: Fields) -> Sample:
        pair = _pair(row)
        line: object = row.position + 1
        if row.has("line"):
            row.integer("line", low=1)
            line = row.fields["line"]
        return Sample(
            sample_id=row.identifier("id", f"ntrex-{line}"),
            suite=request.name,
            domain=request.name,
            category=request.name,
            turns=(NTREX_DE_EN.format(text=pair[0].strip()),),
            references=((pair[1].strip(),),),
            scorer="bleu",
            language="en",
            max_new_tokens=256,
            meta={"document_id": row.fields["document_id"]} if row.has("document_id") else {},
        )

    file = _rows(request)
    refuse_other(file, request.name)
    return suite_of(request, SOURCE, file, checked(file, sample, forms=SOURCE.forms))


def _pair(row: Fields) -> tuple[str, str]:
    both = row.fields.get("translation")
    if not isinstance(both, Mapping):
        return row.text("de"), row.text("en")
    inner = row.inside(both)
    return inner.text("de"), inner.text("en")


def _rows(request: Request) -> RowFile:
    if request.path is None:
        offline = f"Get {_GERMAN.url} and {_ENGLISH.url} on another machine and use --suite {request.name}@FOLDER"
        german, english, documents = (
            download(published, suite=request.name, offline=offline) for published in (_GERMAN, _ENGLISH, _DOCUMENTS)
        )
        return _aligned(german, english, documents)
    if request.path.startswith(PREFIX):
        return rows_of(request, SOURCE)
    place = Path(request.path).expanduser() if request.path.startswith("~/") else Path(request.path)
    if place.name in (_GERMAN.file, _ENGLISH.file):
        return _aligned(place.with_name(_GERMAN.file), place.with_name(_ENGLISH.file), place.with_name(_DOCUMENTS.file))
    for folder in (place, place / "NTREX-128"):
        german, english = folder / _GERMAN.file, folder / _ENGLISH.file
        if _there(german) and _there(english):
            return _aligned(german, english, place / _DOCUMENTS.file)
    pair = f"{_GERMAN.file} with {_ENGLISH.file}"
    return read_rows(request.path, what=SOURCE.what, files=(*SOURCE.files, pair))


def _aligned(german: Path, english: Path, documents: Path) -> RowFile:
    """Rows of two text files, line by line, with the document of each line where a third file names it."""
    data = [_read(german), _read(english)]
    sides = [decoded(content, str(file)) for content, file in zip(data, (german, english), strict=True)]
    lines = [side.removesuffix("\n").split("\n") for side in sides]
    if len(lines[0]) != len(lines[1]):
        raise SuiteError(
            f"{german}: {len(lines[0])} lines, but {english.name} has {len(lines[1])}",
            advice="Lines belong together by number: take both files from one commit.",
        )
    names = decoded(_read(documents), str(documents)).split("\n") if _there(documents) else []
    rows = []
    for number, (de, en) in enumerate(zip(*lines, strict=True), 1):
        fields = {"line": number, "de": de.removesuffix("\r"), "en": en.removesuffix("\r")}
        if number <= len(names) and names[number - 1].strip():
            fields["document_id"] = names[number - 1].strip()
        rows.append(Row(line=number, fields=fields))
    return RowFile(
        name=f"{german.name} + {english.name}",
        shown=str(german),
        rows=tuple(rows),
        sha256=sha256(b"".join(data)).hexdigest(),
    )


def _there(file: Path) -> bool:
    try:
        return file.is_file()
    except OSError:
        # Whoever reads it says what is wrong.
        return False


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise SuiteError(f"{file}: cannot be read ({error.strerror or error})") from error
