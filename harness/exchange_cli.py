"""The command line's two groups for foreign files: `draftboard import` and `draftboard export`."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from draftboard.plugins import AsJson

__all__ = ["export_app", "import_app"]

import_app = App(name="import", help="Read result files of other tools into a folder that show and render read.")
export_app = App(name="export", help="Write a run or a head as other tools write theirs, or count as they count.")

Out = Annotated[Path, Parameter(name=["--out", "-o"], help="Folder to make; it must not exist yet.")]
Into = Annotated[Path, Parameter(name=["--out", "-o"], help="Folder to make for the files; it must not exist yet.")]
Sources = Annotated[tuple[Path, ...], Parameter(required=True)]
Hardware = Annotated[str, Parameter(help="What it ran on, as tables should say it; only equal names are compared.")]
Model = Annotated[str, Parameter(help="The target model, as tables should say it.")]


@import_app.command(name="spec-bench")
def import_spec_bench(
    files: Sources,
    /,
    *,
    out: Out,
    baseline: str | None = None,
    questions: Path | None = None,
    tokenizer: str | None = None,
    hardware: Hardware = "",
    model: Model = "",
) -> int:
    """Make a run of Spec-Bench answer files, one per method.

    Parameters
    ----------
    files
        Answer files (.jsonl); the model_id in them is the method's name.
    baseline
        The model_id to compare with [default: the file whose steps all give one token].
    questions
        Spec-Bench's question.jsonl: brings the prompts and references, so that the answers are scored.
    tokenizer
        Model whose tokenizer counts the texts again, for the figures that count as Spec-Bench's script does.
    """
    from draftboard.exchange import import_spec_bench_command

    return import_spec_bench_command(
        files, out=out, baseline=baseline, questions=questions, tokenizer=tokenizer, hardware=hardware, model=model
    )


@import_app.command(name="specdec-bench")
def import_specdec_bench(directories: Sources, /, *, out: Out, hardware: Hardware = "", model: Model = "") -> int:
    """Read directories that specdec_bench wrote, one per method.

    Parameters
    ----------
    directories
        Folders with acceptance_rate.json or timing.json.
    """
    from draftboard.exchange import import_specdec_bench_command

    return import_specdec_bench_command(directories, out=out, hardware=hardware, model=model)


@import_app.command(name="vllm")
def import_vllm(files: Sources, /, *, out: Out, hardware: Hardware = "", model: Model = "") -> int:
    """Read result files of vllm bench serve.

    Parameters
    ----------
    files
        Files of its --save-result, one object each or one a line.
    """
    from draftboard.exchange import import_vllm_command

    return import_vllm_command(files, out=out, hardware=hardware, model=model)


@import_app.command(name="stream")
def import_stream(
    files: Sources, /, *, out: Out, label: str = "stream", hardware: Hardware = "", model: Model = ""
) -> int:
    """Read the recorded events of streamed answers: tokens, time to first token, rate.

    Parameters
    ----------
    files
        Lines with a time and the payload of each event; docs/import-export.md shows them.
    label
        The method's name in tables.
    """
    from draftboard.exchange import import_stream_command

    return import_stream_command(files, out=out, label=label, hardware=hardware, model=model)


@import_app.command(name="counters")
def import_counters(
    before: Path, after: Path, /, *, out: Out, label: str = "server", hardware: Hardware = "", model: Model = ""
) -> int:
    """Read vLLM's speculation counters before and after a run: the run is the difference.

    Parameters
    ----------
    before
        The server's /metrics page before the run.
    after
        The same page after it.
    label
        The method's name in tables.
    """
    from draftboard.exchange import import_counters_command

    return import_counters_command(before, after, out=out, label=label, hardware=hardware, model=model)


@export_app.command(name="spec-bench")
def export_spec_bench(run: Path, /, *, out: Into) -> int:
    """Write a run as Spec-Bench answer files, one per method.

    Parameters
    ----------
    run
        Folder of a run.
    """
    from draftboard.exchange import export_files_command

    return export_files_command("spec-bench", run, out)


@export_app.command(name="specdec-bench")
def export_specdec_bench(run: Path, /, *, out: Into) -> int:
    """Write a run as specdec_bench writes its results, one folder per method.

    Parameters
    ----------
    run
        Folder of a run.
    """
    from draftboard.exchange import export_files_command

    return export_files_command("specdec-bench", run, out)


@export_app.command(name="vllm")
def export_vllm(run: Path, /, *, out: Into) -> int:
    """Write a run's aggregates as vllm bench serve writes them, one file per method.

    Parameters
    ----------
    run
        Folder of a run.
    """
    from draftboard.exchange import export_files_command

    return export_files_command("vllm", run, out)


@export_app.command(name="speed-py")
def export_speed_py(method: Path, baseline: Path, /, *, tokenizer: str, json: AsJson = False) -> int:
    """Print what Spec-Bench's speed script gives for two answer files, and the same on the rows that both have.

    Parameters
    ----------
    method
        Answer file of the method.
    baseline
        Answer file of plain decoding.
    tokenizer
        Model whose tokenizer counts the baseline's texts.
    """
    from draftboard.exchange import speed_py_command

    return speed_py_command(method, baseline, tokenizer=tokenizer, as_json=json)


@export_app.command(name="head")
def export_head(head: str, /, *, out: Into, model: str = "smollm2-135m", revision: str | None = None) -> int:
    """Write an EAGLE head with the names of official files, which other engines read.

    Parameters
    ----------
    head
        A folder with config.json and weights of any toolkit, a Hugging Face id, or the name of a bundled head.
    model
        The target that the head drafts for.
    revision
        Branch, tag or commit of the target's Hugging Face id.
    """
    from draftboard.head_export import export_head_command

    return export_head_command(head, out, model=model, revision=revision)
