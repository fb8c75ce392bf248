"""Scoring: what was written, held against the suites' references. Text in, metrics out, and never a model.

`score` is the one way in; every scorer is a function from answers to `Scores`, found by name.
"""

from draftboard.scoring.bleu import (
    bleu_tokenizer,
    corpus_bleu,
    corpus_chrf,
    pooled_score,
    score_bleu,
    sentence_bleu,
)
from draftboard.scoring.execution import score_pass_at_1
from draftboard.scoring.last_number import (
    final_number,
    find_numbers,
    gold_number,
    number_value,
    score_last_number,
)
from draftboard.scoring.letter import LetterReading, read_letter, score_letter
from draftboard.scoring.qa import QaScore, qa_score, score_qa
from draftboard.scoring.records import Answer, Item, Scores, Value, score_each
from draftboard.scoring.registry import (
    ENTRY_POINTS,
    SCORERS,
    Scorer,
    load_plugins,
    register_scorer,
    runs_code,
    score,
)
from draftboard.scoring.rouge import rouge_pair, rouge_tokenizer, score_rouge
from draftboard.scoring.sandbox import RunCode, require_sandbox
from draftboard.scoring.texts import clean

__all__ = [
    "ENTRY_POINTS",
    "SCORERS",
    "Answer",
    "Item",
    "LetterReading",
    "QaScore",
    "RunCode",
    "Scorer",
    "Scores",
    "Value",
    "bleu_tokenizer",
    "clean",
    "corpus_bleu",
    "corpus_chrf",
    "final_number",
    "find_numbers",
    "gold_number",
    "load_plugins",
    "number_value",
    "pooled_score",
    "qa_score",
    "read_letter",
    "register_scorer",
    "require_sandbox",
    "rouge_pair",
    "rouge_tokenizer",
    "runs_code",
    "score",
    "score_bleu",
    "score_each",
    "score_last_number",
    "score_letter",
    "score_pass_at_1",
    "score_qa",
    "score_rouge",
    "sentence_bleu",
]
