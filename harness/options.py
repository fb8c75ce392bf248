"""What a run may be told: one frozen dataclass that is command line, plan file and Python API at once.

None means "not said": the command line wins over the plan file, and what neither says takes the default of `plan`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

from cyclopts import Parameter, Token

from draftboard.errors import UserError

__all__ = ["RunOptions", "Whole", "convert_options", "read_options"]

_Repeated = Parameter(negative=(), consume_multiple=False)


def _whole(_: Any, tokens: Sequence[Token]) -> int:
    """A whole number as it stands; left to itself the library rounds 1.5 to a neighbour."""
    try:
        return int(tokens[0].value)
    except ValueError as error:
        raise ValueError(f"{tokens[0].value!r} is not a whole number") from error


Whole = Parameter(converter=_whole)
"""How an integer is read from the command line."""

_Integer = Annotated[int | None, Whole]


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Settings of a run. A plan file takes the same names as keys, with `_` for `-`."""

    model: str | None = None
    """Target: a bundled alias, a Hugging Face id, a local folder or a .gguf file [default: smollm2-135m]."""
    revision: str | None = None
    """Branch, tag or commit of a Hugging Face id."""
    method: Annotated[tuple[str, ...] | None, _Repeated] = None
    """A method, brackets allowed: pld, samd[token_recycling]. Give it once a method. The baseline runs always."""
    methods: Annotated[tuple[dict[str, Any], ...] | None, Parameter(parse=False)] = None
    """Method tables, in a plan file only: [[methods]] with method, label and settings."""
    suite: Annotated[tuple[str, ...] | None, _Repeated] = None
    """A suite, NAME[/VARIANT][@PATH]: mini, spec_bench@question.jsonl, mmlu/letter@mmlu [default: mini]."""
    limit: _Integer = None
    """At most this many samples a domain."""
    category: Annotated[tuple[str, ...] | None, _Repeated] = None
    """Only these domains or raw categories; repeat it, or set commas between them."""
    ids: str | None = None
    """File with sample ids, one a line: only these, in this order."""
    part: Literal["all", "calibration", "test"] | None = None
    """Part of the 20/80 split of each domain: what settings are chosen on, or what is reported [default: all]."""
    max_prompt_tokens: _Integer = None
    """Leave out samples whose conversation may need a longer prompt; what was left out is counted and told."""
    shots: _Integer = None
    """Examples before a question, for suites that have them (mmlu/k-shot, mmlu/loglik) [default: 5]."""
    qa_references: str | None = None
    """File with answers for Spec-Bench's qa questions, which its own file has none for."""
    history: Literal["live", "reference"] | None = None
    """What a later turn follows: the method's own answers, or the baseline's for every method [default: live]."""
    max_new_tokens: _Integer = None
    """Longest output of a turn in tokens; a suite's own shorter budget stays [default: 1024]."""
    temperature: float | None = None
    """0 is greedy [default: 0]."""
    top_p: float | None = None
    """Nucleus of the warped distribution [default: 1]."""
    top_k: _Integer = None
    """Keep the k likeliest tokens; 0 keeps all [default: 0]."""
    seed: _Integer = None
    """Of sample order, method order and sampling [default: 0]."""
    repeats: _Integer = None
    """Rounds over all samples [default: 1]."""
    dtype: Literal["auto", "float32", "float16", "bfloat16"] | None = None
    """Of the target [default: auto: what this device computes fastest]."""
    device: str | None = None
    """auto, cpu, cuda or cuda:N [default: auto]."""
    threads: _Integer = None
    """Threads that torch computes with on a CPU [default: the cores that this process may use]."""
    template: str | None = None
    """auto (the tokenizer's chat template), vicuna, none, or a Jinja file [default: auto]."""
    budget: Literal["auto", "paper"] | None = None
    """Draft sizes of all methods: sized to this machine, or as published [default: each method's own, auto]."""
    curve: str | None = None
    """Folder of a run whose cost curve drafts are sized to, instead of a new one, so that both draft alike."""
    draft_model: str | None = None
    """Draft model of sps."""
    stop: Annotated[tuple[str, ...] | None, _Repeated] = None
    """A text that ends a turn; the answer is cut before it."""
    warmup: Literal["auto", "full", "light", "none"] | None = None
    """Generations before timing: full is three lengths and a whole sample a method, light two short ones
    [default: auto: full on CUDA, light on a CPU]."""
    profile: bool | None = None
    """Synchronise the device inside steps, for true draft/verify/other times. Not for speed figures on CUDA."""
    traces: bool | None = None
    """Store every draft of the first round with its texts, for pages that show each answer step by step."""


def read_options(path: Path) -> RunOptions:
    """Read a plan file (TOML). All faults are reported at once; an unknown key is told with the nearest one."""
    import tomllib

    try:
        table = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise UserError(f"is not UTF-8 (byte {error.start})", where=str(path)) from error
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"is not valid TOML: {error}", where=str(path)) from error
    except RecursionError as error:
        raise UserError("is nested too deeply", where=str(path)) from error
    return convert_options(table, str(path))


def convert_options(table: Mapping[str, Any], where: str, *, others: Sequence[str] = ()) -> RunOptions:
    """Check a table of settings by name. Raises UserError with all faults, an unknown key with the nearest one.

    `others` are keys that the caller reads itself: they are named beside the known ones.
    """
    import msgspec  # slow to import, and only plan files need it

    kinds = get_type_hints(RunOptions, include_extras=False)
    known = [f.name for f in fields(RunOptions)]
    names = [*known, *others]
    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in table.items():
        if key not in known:
            near = get_close_matches(key, names, n=1)
            problems.append(f"unknown key {key!r}" + (f" — did you mean {near[0]!r}?" if near else ""))
            continue
        if key in ("method", "suite", "stop", "category") and isinstance(value, str):
            value = [value]
        try:
            values[key] = msgspec.convert(value, kinds[key], strict=True)
        except msgspec.ValidationError as error:
            problems.append(f"{key} = {value!r}: {error}")
    if problems:
        raise UserError(
            f"{len(problems)} problem(s) in the plan",
            where=where,
            problems=tuple(problems),
            advice=f"Keys: {', '.join(names)}.",
        )
    return RunOptions(**values)


def merged(first: RunOptions, second: RunOptions) -> RunOptions:
    """Return `second` with what it leaves open taken from `first`."""
    said = {f.name: getattr(second, f.name) for f in fields(RunOptions) if getattr(second, f.name) is not None}
    if "method" in said and "methods" not in said:
        # Methods named on the command line replace the plan's, tables included.
        said["methods"] = None
    return replace(first, **said)
