import re
from pathlib import Path

import pytest

from draftboard.scoring import SCORERS, Answer, score


@pytest.mark.usefixtures("own_registry")
def test_examples_of_the_page_run():
    page = (Path(__file__).parents[3] / "docs" / "scoring.md").read_text(encoding="utf-8")
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, names)
    assert names["scores"].values["bleu"].value == 100
    brief = score([Answer(sample_id="a", turn=0, text="x " * 11, references=("x",))], "brevity")
    assert brief.values["brief"].value == 0
    for name in ("bleu", "rouge", "last_number", "letter", "qa", "pass_at_1"):
        assert name in SCORERS
        assert f"| `{name}` |" in page
