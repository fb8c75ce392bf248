"""The command `draftboard check-head`.

Exit codes: 0 the head can be used, 1 it is far below what a head has to do, 2 bad input.
"""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import Annotated, Literal

from draftboard.errors import UserError
from draftboard.options import RunOptions, Whole
from draftboard.plugins import AsJson, Plugins, load_plugins

__all__ = ["check_head"]


def check_head(
    head: str,
    /,
    *,
    model: str | None = None,
    revision: str | None = None,
    text: Path | None = None,
    suite: str | None = None,
    limit: Annotated[int | None, Whole] = None,
    tokens: Annotated[int, Whole] = 2_000,
    template: str | None = None,
    dtype: Literal["auto", "float32", "float16", "bfloat16"] | None = None,
    device: str | None = None,
    threads: Annotated[int | None, Whole] = None,
    plugin: Plugins = (),
    json: AsJson = False,
) -> int:
    """Say whether an EAGLE head is any good for a model, before speed is measured: how often its drafts are right.

    Parameters
    ----------
    head
        A folder with config.json and weights, a Hugging Face id, or the name of a bundled head.
    model
        The target [default: smollm2-135m].
    revision
        Branch, tag or commit of the target's Hugging Face id.
    text
        Text to look at: a text file, or JSONL with text, prompt or turns. Without it the target's own answers.
    suite
        The suite whose prompts the target answers [default: mini].
    limit
        At most this many samples a domain, or documents of the text.
    tokens
        About how many tokens to look at.
    template
        auto (the tokenizer's chat template), vicuna, none, or a Jinja file [default: auto].
    dtype
        Of target and head [default: auto: what this device computes fastest].
    device
        auto, cpu, cuda or cuda:N [default: auto].
    threads
        Threads that torch computes with on a CPU [default: the cores that this process may use].
    """
    load_plugins(plugin)
    problems = []
    if text is not None and suite is not None:
        problems.append("--text and --suite exclude each other: the text is given, or the target writes it")
    if tokens < 2:
        problems.append(f"tokens must be at least 2, not {tokens}")
    if limit is not None and limit < 1:
        problems.append(f"limit must be at least 1, not {limit}")
    if problems:
        raise UserError(f"{len(problems)} problem(s) in what is asked", problems=tuple(problems))
    from draftboard.head_check import console_text, document, examine_head

    options = RunOptions(
        model=model,
        revision=revision,
        suite=(suite,) if suite is not None else None,
        limit=limit,
        template=template,
        dtype=dtype,
        device=device,
        threads=threads,
    )
    report = examine_head(head, options, text=text, tokens=tokens)
    if json:
        print(json_.dumps(document(report), allow_nan=False, indent=1))
    else:
        print(console_text(report), end="")
    return 1 if report.verdict == "broken" else 0
