from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from draftboard.errors import UserError
from draftboard.templates import Template, encode, prompt_hash, render, resolve_template

CHAT = (
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def tokenizer(*, chat: str | None = None, adds_bos: bool = True, adds_eos: bool = False) -> PreTrainedTokenizerFast:
    words = ["<unk>", "<s>", "</s>", "a", "b", "c"]
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if adds_bos or adds_eos:
        single = ("<s> " if adds_bos else "") + "$A" + (" </s>" if adds_eos else "")
        backend.post_processor = processors.TemplateProcessing(
            single=single, special_tokens=[(t, i) for t, i in (("<s>", 1), ("</s>", 2)) if t in single]
        )
    made = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="<unk>", bos_token="<s>", eos_token="</s>")
    made.chat_template = chat
    return made


PLAIN = tokenizer()
VICUNA = Template(name="vicuna")
SYS = (
    "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, "
    "detailed, and polite answers to the user's questions."
)


def test_vicuna_first_turn_byte_for_byte() -> None:
    assert render(VICUNA, PLAIN, None, ["q1"]) == SYS + " USER: q1 ASSISTANT:"


def test_vicuna_second_turn_byte_for_byte() -> None:
    text = render(VICUNA, PLAIN, None, ["q1", "q2"], ["a1"])
    assert text == SYS + " USER: q1 ASSISTANT: a1</s>USER: q2 ASSISTANT:"


def test_vicuna_keeps_odd_turns_as_they_are() -> None:
    turn = " two\nlines\u2028{{ x }} é "
    assert render(VICUNA, PLAIN, "S", [turn]) == f"S USER: {turn} ASSISTANT:"


def test_none_is_the_raw_turn() -> None:
    none = Template(name="none")
    assert render(none, PLAIN, None, ["q1"]) == "q1"
    assert render(none, PLAIN, "s", ["q1", "q2"], ["a1"]) == "s\n\nq1\n\na1\n\nq2"


def test_auto_takes_the_tokenizers_own_template_and_adds_no_system_message() -> None:
    chat = tokenizer(chat=CHAT)
    template = resolve_template("auto", chat)
    assert (template.name, template.notice) == ("chat", "")
    assert render(template, chat, None, ["q1", "q2"], ["a1"]) == "<s>[user]q1[assistant]a1[user]q2[assistant]"
    assert render(template, chat, "s", ["q"]) == "<s>[system]s[user]q[assistant]"


def test_auto_falls_back_to_vicuna_for_a_vicuna_checkpoint() -> None:
    bare = tokenizer()
    bare.name_or_path = "lmsys/vicuna-7b-v1.3"
    template = resolve_template("auto", bare)
    assert template.name == "vicuna"
    assert "Vicuna template" in template.notice


def test_auto_falls_back_to_none_and_says_so() -> None:
    template = resolve_template("auto", PLAIN)
    assert template.name == "none"
    assert "raw turns" in template.notice


def test_a_chat_template_that_refuses_system_messages_is_told() -> None:
    chat = tokenizer(chat="{{ raise_exception('no system role') if messages[0].role == 'system' else 'x' }}")
    with pytest.raises(UserError, match="system, user: no system role") as caught:
        render(resolve_template("auto", chat), chat, "s", ["q"])
    assert "Jinja file" in str(caught.value)


def test_turns_and_answers_must_fit() -> None:
    with pytest.raises(ValueError, match="2 turns need 1 answers, got 0"):
        render(VICUNA, PLAIN, None, ["q1", "q2"])


def test_a_jinja_file_sees_the_whole_conversation(tmp_path: Path) -> None:
    path = tmp_path / "t.jinja"
    path.write_text(
        "{{ bos_token }}{{ system }}|{{ turns | join('+') }}|{{ answers[0] }}|{{ messages | length }}{{ eos_token }}\n"
    )
    template = resolve_template(str(path), PLAIN)
    assert render(template, PLAIN, None, ["q1", "q2"], ["a1"]) == "<s>None|q1+q2|a1|3</s>\n"
    assert len(template.sha256) == 64
    assert VICUNA.sha256 == ""


def test_a_jinja_file_that_does_not_parse_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.jinja"
    path.write_text("fine\n\n{% for x in %}\n")
    with pytest.raises(UserError) as caught:
        resolve_template(str(path), PLAIN)
    assert caught.value.where == f"{path}:3"


@pytest.mark.parametrize("fault", ["{{ turn }}", "{{ turns[3].x }}", "{{ 1 / 0 }}", "{{ turns + 1 }}"])
def test_a_jinja_file_that_fails_is_named_with_its_line(tmp_path: Path, fault: str) -> None:
    path = tmp_path / "t.jinja"
    path.write_text(f"fine\n{fault}\n")
    template = resolve_template(str(path), PLAIN)
    with pytest.raises(UserError) as caught:
        render(template, PLAIN, None, ["q"])
    assert caught.value.where == f"{path}:2"


def test_a_jinja_file_cannot_reach_python(tmp_path: Path) -> None:
    path = tmp_path / "t.jinja"
    path.write_text("{{ ''.__class__.__mro__ }}")
    with pytest.raises(UserError, match="unsafe"):
        render(resolve_template(str(path), PLAIN), PLAIN, None, ["q"])


def test_an_unknown_template_lists_the_known() -> None:
    with pytest.raises(UserError, match="auto, vicuna, none, or the path of a Jinja file"):
        resolve_template("vicunna", PLAIN)


@pytest.mark.parametrize(
    ("adds_bos", "text", "ids"),
    [
        (True, "a b", [1, 3, 4]),
        (True, "<s> a b", [1, 3, 4]),
        (False, "a b", [3, 4]),
        (False, "<s> a b", [1, 3, 4]),
        (True, "", [1]),
    ],
)
def test_the_bos_token_stands_exactly_once(adds_bos: bool, text: str, ids: list[int]) -> None:
    assert encode(tokenizer(adds_bos=adds_bos), text) == ids


def test_a_prompt_is_never_closed_by_the_tokenizer() -> None:
    closing = tokenizer(adds_eos=True)
    assert encode(closing, "a b") == [1, 3, 4]
    assert encode(closing, "<s> a b </s>") == [1, 3, 4, 2]


def test_prompt_hash_tells_lists_apart() -> None:
    assert prompt_hash(["ab", "c"]) != prompt_hash(["a", "bc"])
    assert prompt_hash(["a", "b"]) != prompt_hash(["b", "a"])
    assert prompt_hash(iter(["é"])) == prompt_hash(["é"])


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "recursion"),
        ("{{ 'a' * 10**15 }}", "MemoryError"),
        ("{{ " + "(" * 4000 + "1" + ")" * 4000 + " }}", "cannot be compiled"),
        ("{{ 10**100000 }}", "cannot be compiled"),
        ("{{ '\\ud800' }}", "half a surrogate pair"),
        ("{# nothing #}", "empty prompt"),
        ("{{ add_generation_prompt }}", "given messages, system, turns, answers"),
    ],
    ids=["recursion", "memory", "depth", "digits", "surrogate", "empty", "undefined"],
)
def test_a_template_that_cannot_be_used_is_told_apart_from_a_fault_of_ours(
    tmp_path: Path, source: str, why: str
) -> None:
    path = tmp_path / "t.jinja"
    path.write_text(source)
    with pytest.raises(UserError, match=why):
        render(resolve_template(str(path), PLAIN), PLAIN, None, ["a"])


def test_a_home_folder_that_nobody_has() -> None:
    with pytest.raises(UserError, match="cannot be read"):
        resolve_template("~nobody-of-that-name/t.jinja", PLAIN)


def test_blanks_before_the_beginning_token_do_not_double_it() -> None:
    assert encode(PLAIN, "\n <s> a").count(1) == 1
