"""What `draftboard export head` does: finds head and target, and writes the head with official names."""

from __future__ import annotations

import sys
from pathlib import Path

from draftboard import models
from draftboard.hub import find_folder
from draftboard.leaderboards.text import terminal_text

__all__ = ["export_head_command"]


def export_head_command(name: str, out: Path, *, model: str, revision: str | None) -> int:
    """Write the head into `out` and print the folder. Weights of the target are read only where the head borrows some.

    Raises UserError or MethodError for a head or a target that cannot be used, and if `out` exists.
    """
    from draftboard.methods.artifact import check_free
    from draftboard.methods.eagle.checkpoint import read_config
    from draftboard.methods.eagle.config import TargetShape
    from draftboard.methods.eagle.export import export_head

    check_free(out)
    folder = find_folder(name)
    ref = models.resolve(model, revision)
    text = models.load_config(ref).get_text_config()
    shape = TargetShape(
        name=model, hidden=int(text.hidden_size), vocab=int(text.vocab_size), layers=int(text.num_hidden_layers)
    )

    def say(notice: str) -> None:
        print(terminal_text(f"warning: {notice}"), file=sys.stderr)

    config = read_config(folder, target=shape, say=say)
    lm_head = None
    if config.kind == "eagle3" and not config.own_lm_head and config.draft_vocab < config.vocab:
        lm_head = models.load_model(ref, device="cpu").get_output_embeddings().weight
    export_head(folder, out, target=shape, lm_head=lm_head)
    print(out)
    return 0
