"""A whole tiny model on disk, question files and the command line in this process."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SPECIAL = "<unk> <s> </s> user assistant :"
WORDS = (
    f"{SPECIAL} the a ferry leaves at nine ten tide low high boat bridge is was closed open late early train river sea "
    "who wrote what where when how many question number answer yes no and or but of to in on from with one two three "
    "four five six seven eight"
).split()
TEMPLATE = (
    "<s> {% for message in messages %}{{ message.role }} : {{ message.content }} "
    "{% if message.role == 'assistant' %}</s> {% endif %}{% endfor %}assistant :"
)
WINDOW = 96


@dataclass(frozen=True)
class Told:
    """What one call of the command line came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def make_model(
    path: Path,
    *,
    words: list[str] = WORDS,
    width: int | None = None,
    seed: int = 7,
    window: int = WINDOW,
    layers: int = 2,
    unknown: str = "<unk>",
) -> Path:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=width or len(words),
                hidden_size=32,
                intermediate_size=48,
                num_hidden_layers=layers,
                num_attention_heads=4,
                num_key_value_heads=2,
                max_position_embeddings=window,
                initializer_range=0.3,
                bos_token_id=1,
                eos_token_id=2,
            )
        ).eval()
    model.save_pretrained(path)
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=unknown))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=backend,
        unk_token=unknown,
        bos_token="<s>",
        eos_token="</s>",
        chat_template=TEMPLATE,
    ).save_pretrained(path)
    return path


@pytest.fixture(scope="session")
def models_made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """`target`, a shallower `draft` with its table, and `other`, the target's table with other weights."""
    root = tmp_path_factory.mktemp("models")
    return {
        "target": make_model(root / "target"),
        "draft": make_model(root / "draft", layers=1, width=len(WORDS) + 8, seed=3),
        "other": make_model(root / "other", seed=8),
    }


@pytest.fixture(scope="session")
def model(models_made: dict[str, Path]) -> str:
    return str(models_made["target"])


@pytest.fixture
def new_model() -> Callable[..., Path]:
    return make_model


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test's own, empty."""
    monkeypatch.setenv("DRAFTBOARD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of a few weights, whole."""
    from made_models import whole_folder

    return whole_folder(tmp_path / "tiny")


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    """The same model in one file."""
    from made_models import write_gguf

    return write_gguf(tmp_path / "tiny.gguf")


QUESTIONS = [
    {"question_id": 1, "category": "qa", "turns": ["who wrote the answer"], "reference": ["the ferry"], "scorer": "qa"},
    {"question_id": 2, "category": "qa", "turns": ["when is the tide low"], "reference": ["at nine"], "scorer": "qa"},
    {"question_id": 3, "category": "chat", "turns": ["the boat leaves at ten", "and when is the train late"]},
    {"question_id": 4, "category": "chat", "turns": ["how many bridge is open the ferry leaves at nine the ferry"]},
]


def write_questions(path: Path, questions: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(question) + "\n" for question in questions), encoding="utf-8")
    return path


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Two domains, one scored, one with a sample of two turns."""
    return write_questions(tmp_path / "questions.jsonl", QUESTIONS)


@pytest.fixture
def ask(tmp_path: Path) -> Callable[[list[dict[str, Any]]], Path]:
    """Write a question file."""
    return lambda questions: write_questions(tmp_path / "asked.jsonl", questions)


Cli = Callable[..., Told]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, shared_cache: Path) -> Cli:
    """Run a command line in this process; paths and numbers may be given as they are."""
    from draftboard import cli as command_line

    monkeypatch.setenv("DRAFTBOARD_CACHE", str(shared_cache))
    # Rich folds tables to the terminal's width; wide ones are easier to read here.
    monkeypatch.setenv("COLUMNS", "400")

    def call(*tokens: object) -> Told:
        capsys.readouterr()
        torch = sys.modules.get("torch")
        threads = torch.get_num_threads() if torch else 0
        try:
            with pytest.raises(SystemExit) as ended:
                command_line.main([str(token) for token in tokens])
        finally:
            if torch:
                torch.set_num_threads(threads)
        said = capsys.readouterr()
        return Told(int(ended.value.code or 0), said.out, said.err)

    return call


@pytest.fixture
def run(cli: Cli, model: str, questions: Path, tmp_path: Path) -> Cli:
    """`draftboard run` of the tiny model on the questions, eight tokens a turn, into `tmp_path/run`."""

    def call(*tokens: object, out: Path | None = None, suite: Path | None = None, target: str = model) -> Told:
        return cli(
            "run",
            "--model",
            target,
            "--suite",
            f"jsonl@{suite or questions}",
            "--max-new-tokens",
            8,
            "--dtype",
            "float32",
            "--device",
            "cpu",
            "--threads",
            1,
            "--out",
            out or tmp_path / "run",
            *tokens,
        )

    return call


def read_rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def rows() -> Callable[[Path], list[dict[str, Any]]]:
    """Read JSON lines."""
    return read_rows


@pytest.fixture
def outputs() -> Callable[[Path], dict[tuple[str, str, int], list[list[int]]]]:
    """Token ids of every turn of every good cell of a run, by cell."""

    def read(run: Path) -> dict[tuple[str, str, int], list[list[int]]]:
        found: dict[tuple[str, str, int], list[list[int]]] = {}
        for row in read_rows(run / "generations.jsonl"):
            key = (row["method"], row["sample"], row["repeat"])
            if row["status"] == "ok":
                assert key not in found, f"{key} stands twice"
                found[key] = [turn["token_ids"] for turn in row["turns"]]
        return found

    return read


@pytest.fixture
def fresh_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What plug-ins register is forgotten after the test."""
    from draftboard.methods import registry

    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


BREAKING = '''
from dataclasses import dataclass
from draftboard.methods import Method, register
from draftboard.methods.engine import Drafter, TokenTree

@register("breaking")
@dataclass(frozen=True, slots=True, kw_only=True)
class Breaking(Method):
    """Fails on prompts that hold token `at`: "leaves"."""
    at: int = 9
    def drafter(self, binding):
        return Breaks(self.at)

class Breaks(Drafter):
    def __init__(self, at):
        self.at = at
    def begin(self, prompt, scores):
        self.bad = self.at in prompt
    def propose(self, context):
        if self.bad:
            raise {error}
        return TokenTree([context.root])
'''

SLOW = '''
import time
from dataclasses import dataclass
from draftboard.methods import Method, register
from draftboard.methods.engine import RootOnly

@register("slow")
@dataclass(frozen=True, slots=True, kw_only=True)
class Slow(Method):
    """Plain decoding with all the time in the world."""
    pause_s: float = 0.0
    def drafter(self, binding):
        return Sleeps(self.pause_s)

class Sleeps(RootOnly):
    def __init__(self, pause_s):
        self.pause_s = pause_s
    def propose(self, context):
        time.sleep(self.pause_s)
        return super().propose(context)
'''


@pytest.fixture
def breaking(tmp_path: Path, fresh_registry: None) -> Callable[[str], Path]:
    """Write a plug-in whose drafter raises the given expression on some prompts."""

    def write(error: str) -> Path:
        path = tmp_path / "breaking.py"
        path.write_text(BREAKING.replace("{error}", error), encoding="utf-8")
        return path

    return write


@pytest.fixture
def slow(tmp_path: Path, fresh_registry: None) -> Path:
    path = tmp_path / "slow.py"
    path.write_text(SLOW, encoding="utf-8")
    return path
