"""The words around every row that is no prompt by itself, in one place.

A stored run names `WORDING_VERSION`; it is raised with every change here, because other words are another prompt.
Texts in braces are the fields of a row.
"""

__all__ = [
    "GSM8K",
    "HUMANEVAL",
    "MMLU_ANSWER",
    "MMLU_EXPLAIN",
    "MMLU_HEADER",
    "MMLU_LETTER",
    "MMLU_QUESTION",
    "NQ_OPEN",
    "NTREX_DE_EN",
    "SCITLDR",
    "SCITLDR_UNTITLED",
    "WORDING_VERSION",
]

WORDING_VERSION = 1

GSM8K = (
    "{question}\n\n"
    "Solve it step by step, and end with a line of the form `#### value`, where value is the final number."
)

NTREX_DE_EN = "Translate the following German text into English. Write the translation and nothing else.\n{text}"

SCITLDR = "Summarize the following abstract of a paper in one sentence.\n{title}\n{document}"

SCITLDR_UNTITLED = "Summarize the following abstract of a paper in one sentence.\n{document}"

NQ_OPEN = "{question}\nAnswer in a few words, without a sentence around them."

HUMANEVAL = (
    "Complete the following Python function. Write the whole function, with its imports and its signature, "
    "in one code block.\n\n```python\n{code}```"
)

MMLU_QUESTION = "{question}\nA. {A}\nB. {B}\nC. {C}\nD. {D}"

MMLU_EXPLAIN = (
    "This is a multiple-choice question about {subject}.\n\n{question}\n\n"
    "Reason briefly. Then finish with a line of the form `Answer: X`, where X is the letter of the right option."
)

MMLU_LETTER = (
    "This is a multiple-choice question about {subject}.\n\n{question}\n\n"
    "Reply with the letter of the right option and nothing else."
)

MMLU_HEADER = "The following are multiple choice questions (with answers) about {subject}."
"""As published with the benchmark."""

MMLU_ANSWER = "{question}\nAnswer:"
"""Continued by a blank and the letter."""
