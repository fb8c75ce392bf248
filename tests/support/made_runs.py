"""Runs written by hand: turns, cells, a whole stored run, and what analysis makes of one."""

from pathlib import Path

from draftboard.analysis import analyse
from draftboard.records import Cell, SampleRecord, Turn
from draftboard.store import StoredRun


def turn(
    tokens=12,
    seconds=1.0,
    *,
    steps=(),
    ends=(),
    first=0.0,
    prefill=None,
    finish="length",
    emits=1,
    prompt="p",
    text="x",
    text_tokens=None,
    cpu=None,
    times=(1.0, 2.0, 1.0),
    nodes=None,
):
    """A turn of ours. `tokens`: their ids or their number; `steps`: (drafted, accepted, kept) each; `ends`: their ends
    in seconds; `times`: draft, verify, other in ms."""
    drafted, accepted, kept = ([step[i] for step in steps] for i in range(3))
    draft_ns, verify_ns, other_ns = ([round(part * 1e6)] * len(kept) for part in times)
    return Turn(
        prompt_tokens=5,
        prompt_sha256=prompt,
        token_ids=list(range(tokens) if isinstance(tokens, int) else tokens),
        text=text,
        finish=finish,
        prefill_ns=round((first if prefill is None else prefill) * 1e9),
        first_ns=round(first * 1e9),
        end_ns=round(seconds * 1e9),
        cpu_ns=round((seconds if cpu is None else cpu) * 1e9),
        first_cpu_ns=0,
        steps={
            "drafted": drafted,
            "nodes": list(drafted if nodes is None else nodes),
            "accepted": accepted,
            "kept": kept,
            "draft_ns": draft_ns,
            "verify_ns": verify_ns,
            "other_ns": other_ns,
            "end_ns": [round(end * 1e9) for end in ends] or [0] * len(kept),
        },
        prefill_emits=emits,
        text_tokens=text_tokens,
    )


def imported_turn(kept=None, tokens=None, seconds=1.0, *, emits=0, prompt="", text="x", drafted=None, accepted=None):
    """A turn as a foreign file tells it: `kept` per entry, or nothing of its steps."""
    steps = {}
    if kept is not None:
        steps = {"accepted": list(accepted or (max(0, k - 1) for k in kept)), "kept": list(kept)}
        if drafted is not None:
            steps["drafted"] = list(drafted)
    return Turn(
        prompt_tokens=0,
        prompt_sha256=prompt,
        token_ids=[],
        text=text,
        finish="",
        prefill_ns=None,
        first_ns=None,
        end_ns=round(seconds * 1e9),
        cpu_ns=None,
        first_cpu_ns=None,
        steps=steps,
        tokens=tokens if tokens is not None else emits + sum(kept or ()),
        prefill_emits=emits,
    )


def cell(method, sample, *turns, repeat=0, **other):
    return Cell(method=method, sample=f"s/{sample}", repeat=repeat, turns=list(turns), **other)


def stored(
    cells, *, domains=None, methods=("autoregressive", "m"), repeats=1, temperature=0.0, dtype="float32", **other
):
    domains = domains or dict.fromkeys(sorted({c.sample.partition("/")[2] for c in cells}), "qa")
    plan = {
        "schema": 1,
        "model": "tiny",
        "suites": [{"name": "s", "samples": len(domains), "content_hash": "f" * 64}],
        "methods": [
            {"label": label, "method": label, "settings": {}, "lossless": label != "lossy"} for label in methods
        ],
        "sampling": {"temperature": temperature, "top_p": 1.0, "top_k": 0},
        "max_new_tokens": 8,
        "seed": 0,
        "repeats": repeats,
        "dtype": "auto",
        "device": "auto",
        "template": "auto",
        "warmup": "auto",
        "profile": False,
        "resolved": {"dtype": dtype, "device": "cpu"},
    }
    samples = [
        SampleRecord(key=f"s/{sample}", suite="s", sample_id=sample, domain=domain, category=domain, turns=["?"])
        for sample, domain in domains.items()
    ]
    return StoredRun(
        path=Path("run"), plan=plan, environment={"hardware": "here"}, samples=samples, cells=cells, **other
    )


def method_of(run, label="m"):
    (found,) = [method for method in analyse(run).methods if method.method == label]
    return found


def value(figures, name):
    figure = figures[name]
    assert figure.value is not None, figure.reason
    return figure.value


TRACE = ((4, 4, 5), (4, 0, 1), (4, 2, 3), (3, 3, 2))

PAIRS = [
    cell("autoregressive", "1", turn(range(12), 0.8)),
    cell("autoregressive", "2", turn(range(100), 5.0)),
    cell("m", "1", turn(range(12), 0.4)),
    cell("m", "2", turn(range(110), 2.2)),
]
