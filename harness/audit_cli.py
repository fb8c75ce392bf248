"""The command `draftboard audit`. Exit codes: 0 every claim holds, 1 a claim is broken, 2 unusable input."""

import json as json_
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from draftboard.options import Whole
from draftboard.plugins import AsJson, Plugins, load_plugins

__all__ = ["audit"]

_Flag = Parameter(negative=())


def audit(
    source: Annotated[Path, Parameter(name="RUN")],
    outputs: Annotated[Path | None, Parameter(name="OUTPUTS")] = None,
    /,
    *,
    theta: float | None = None,
    exact: Annotated[bool, _Flag] = False,
    fp32: Annotated[bool, _Flag] = False,
    no_model: Annotated[bool, _Flag] = False,
    model: str | None = None,
    device: str | None = None,
    positions: Annotated[int, Whole] = 1000,
    sampling: Annotated[bool, _Flag] = False,
    prompts: Annotated[int, Whole] = 4,
    draws: Annotated[int, Whole] = 50,
    plugin: Plugins = (),
    json: AsJson = False,
) -> int:
    """Say whether each method's output is the target's: exit 0 if all that claim it keep it, 1 if not, 2 if unusable.

    Parameters
    ----------
    source
        Folder of a run; its audit.json is written anew. Or a file of outputs of plain decoding.
    outputs
        A method's file of outputs, where the first is a file too.
    theta
        Logit difference up to which two tokens count as tied [default: measured with the run's model].
    exact
        Ties fail too.
    fp32
        Look at each difference in float32 as well, and say whose token it takes.
    no_model
        Judge by what the run wrote down, without loading the model.
    model
        Where the run's model is now, if it has moved.
    device
        Device to load it on, if not the run's.
    positions
        Positions that theta is measured over.
    sampling
        Check sampling in a greedy run too; a run that samples is always checked.
    prompts
        Prompts that sampling is checked on.
    draws
        Draws of each of them.
    """
    from draftboard.audit import Wish, audit_files, audit_run
    from draftboard.audit.report import document
    from draftboard.audit.show import console_text
    from draftboard.errors import UserError
    from draftboard.leaderboards.text import terminal_text

    if outputs is not None or source.is_file():
        if outputs is None:
            raise UserError("is a file: name the method's file of outputs behind it", where=str(source))
        report = audit_files(source, outputs, theta=theta, exact=exact)
    else:
        load_plugins(plugin)
        wish = Wish(
            theta=theta,
            positions=positions,
            exact=exact,
            float32=fp32,
            with_model=not no_model,
            model=model,
            device=device,
            sampling=sampling,
            prompts=prompts,
            draws=draws,
        )
        report = audit_run(source, wish, say=lambda text: print(terminal_text(text), file=sys.stderr, flush=True))
    if json:
        print(json_.dumps(document(report), allow_nan=False, indent=1))
    else:
        print(console_text(report), end="")
    return 0 if report.passed else 1
