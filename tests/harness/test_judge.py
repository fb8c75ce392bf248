"""A judge of open text: what it is asked, what is kept of its replies, what its failures cost."""

import http.server
import json
import shlex
import socket
import sys
import threading

import pytest

from draftboard.judge import JudgeFailure, Judgement, ask_command, ask_endpoint, summary

from local_server import serving

LIGHT = ("--warmup", "none")
MARKS = """
import json, sys
question = json.load(sys.stdin)
if question["mode"] == "pair":
    a, b = (sum(len(text) for text in question[key]) for key in ("answers_a", "answers_b"))
    print(json.dumps({"winner": "tie" if a == b else "a" if a > b else "b"}))
else:
    print(json.dumps({"scores": [1 + turn for turn in range(len(question["answers"]))], "why": "order"}))
"""


@pytest.fixture
def judge(tmp_path):
    """The command of a judge whose program is the given text."""

    def write(program=MARKS):
        path = tmp_path / "judge.py"
        path.write_text(program)
        return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"

    return write


def test_open_answers_get_marks_by_turn_once(run, cli, judge, tmp_path, rows):
    assert run("--temperature", "1", *LIGHT).code == 0
    told = cli("judge", tmp_path / "run", "--name", "order", "--command", judge())
    assert told.code == 0, told.err
    # Samples 1 and 2 have a scorer; 3 has two turns and 4 one.
    assert told.out == "autoregressive · chat: 1.33 of 10 (n=2)\n"
    kept = rows(tmp_path / "run" / "judgements.jsonl")
    assert [(row["sample"], row["scores"]) for row in sorted(kept, key=lambda row: row["sample"])] == [
        ("jsonl/3", [1, 2]),
        ("jsonl/4", [1]),
    ]
    assert all(row["judge"] == "order" and len(row["prompt_sha256"]) == 64 and "why" in row["reply"] for row in kept)
    again = cli("judge", tmp_path / "run", "--name", "order", "--command", judge("raise SystemExit(3)"))
    assert again.out == told.out
    assert rows(tmp_path / "run" / "judgements.jsonl") == kept
    more = cli("judge", tmp_path / "run", "--name", "order", "--command", judge(), "--scored-too", "--json")
    assert {(row["domain"], row["n"]) for row in more.json["results"]} == {("chat", 2), ("qa", 2)}
    assert "judgements" not in cli("show", tmp_path / "run", "--json").out


def test_what_was_asked_now_is_told_from_what_was_kept(run, cli, judge, tmp_path, rows):
    assert run("--temperature", "1", *LIGHT).code == 0
    asked = (tmp_path / "run", "--name", "order", "--command", judge())
    assert cli("judge", *asked).err == "draftboard: 2 questions asked now, 0 marks kept from earlier calls\n"
    told = cli("judge", *asked, "--json")
    assert told.err == "draftboard: 0 questions asked now, 2 marks kept from earlier calls\n"
    assert (told.json["asked"], told.json["kept"]) == (0, 2)
    lines = (tmp_path / "run" / "generations.jsonl").read_text().splitlines()
    changed = [json.loads(line) for line in lines]
    next(row for row in changed if row["sample"] == "jsonl/4")["turns"][0]["text"] = "another answer"
    (tmp_path / "run" / "generations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in changed))
    told = cli("judge", *asked)
    assert told.err == "draftboard: 1 question asked now, 1 mark kept from earlier calls\n"
    assert told.out == "autoregressive · chat: 1.33 of 10 (n=2)\n"
    assert len(rows(tmp_path / "run" / "judgements.jsonl")) == 3
    assert cli("judge", *asked).out == told.out


def test_another_judge_under_the_same_name_is_refused(run, cli, judge, tmp_path, rows):
    assert run("--temperature", "1", *LIGHT).code == 0
    where = tmp_path / "run" / "judgements.jsonl"
    first = judge()
    assert cli("judge", tmp_path / "run", "--name", "j", "--command", first + " --key SECRET").code == 0
    kept = where.read_bytes()
    assert b"SECRET" not in kept
    assert str(tmp_path).encode() not in kept
    for other in (("--command", first), ("--endpoint", "http://127.0.0.1:9/judge?key=SECRET")):
        for more in ((), ("--scored-too",), ("--against", "autoregressive")):
            told = cli("judge", tmp_path / "run", "--name", "j", *other, *more)
            assert told.code == 2
            assert "the marks of 'j' were made with another judge" in told.err
            assert "Give this judge another --name" in told.err
            assert "SECRET" not in told.err
    assert where.read_bytes() == kept
    assert cli("judge", tmp_path / "run", "--name", "k", "--command", first).code == 0
    # The same words with other blanks are the same command.
    again = cli("judge", tmp_path / "run", "--name", "j", "--command", f" {first}   --key 'SECRET'")
    assert again.err == "draftboard: 0 questions asked now, 2 marks kept from earlier calls\n"
    assert {row["made_with"][:8] for row in rows(where)} == {"command "}


def test_a_command_that_gave_no_mark_does_not_hold_the_name(run, cli, judge, ask, tmp_path):
    assert run(*LIGHT, suite=ask([{"question_id": 1, "turns": ["the ferry"]}])).code == 0
    broken = judge() + " now"
    judge("raise SystemExit(3)")
    assert cli("judge", tmp_path / "run", "--name", "j", "--command", broken).code == 1
    mended = judge()
    for asked in (1, 0):
        told = cli("judge", tmp_path / "run", "--name", "j", "--command", mended)
        assert told.out == "autoregressive · default: 1.00 of 10 (n=1)\n"
        assert (told.code, told.err.split()[1]) == (0, str(asked))


def test_what_equals_the_baseline_needs_no_judge(run, cli, judge, tmp_path):
    assert run("--method", "pld", *LIGHT).code == 0
    told = cli("judge", tmp_path / "run", "--name", "order", "--command", judge())
    assert "pld wrote what the baseline wrote: not judged" in told.err
    assert "pld" not in told.out


def test_a_comparison_counts_only_if_both_orders_agree(run, cli, judge, tmp_path):
    assert run("--method", "pld", "--temperature", "1", "--seed", 1, *LIGHT).code == 0
    always = judge("import json; print(json.dumps({'winner': 'a'}))")
    told = cli("judge", tmp_path / "run", "--name", "first", "--command", always, "--against", "autoregressive")
    assert told.out == "pld · chat: won 0, lost 0, tied 2 against autoregressive (n=2)\n"
    shown = [json.loads(line) for line in (tmp_path / "run/judgements.jsonl").read_text().splitlines()]
    assert sorted((row["first"], row["winner"]) for row in shown) == [("autoregressive",) * 2] * 2 + [("pld",) * 2] * 2


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("print('seven')", "the reply is not JSON"),
        ("print('[7]')", "the reply is not a JSON object"),
        ("print('{}')", "`scores` is not a list"),
        ("print('{\"scores\": [11]}')", "`scores` is not a list of 1 number(s) from 1 to 10"),
        ("print('{\"scores\": [true]}')", "`scores` is not a list"),
        ("print('{\"scores\": [NaN]}')", "`scores` is not a list"),
        ("import sys; sys.exit('out of credit')", "exit code 1: out of credit"),
    ],
)
def test_a_judge_that_fails_is_told_and_asked_again(run, cli, judge, ask, tmp_path, rows, program, why):
    assert run(*LIGHT, suite=ask([{"question_id": 1, "turns": ["the ferry"]}])).code == 0
    told = cli("judge", tmp_path / "run", "--name", "j", "--command", judge(program))
    assert told.code == 1
    assert why in told.err
    assert told.out == "autoregressive · default: n/a (n=0, 1 without a mark)\n"
    mended = cli("judge", tmp_path / "run", "--name", "j", "--command", judge())
    assert mended.code == 0
    assert mended.out == "autoregressive · default: 1.00 of 10 (n=1)\n"
    assert len(rows(tmp_path / "run" / "judgements.jsonl")) == 2


def test_what_cannot_be_meant_is_refused(run, cli, judge, tmp_path):
    assert run(*LIGHT).code == 0
    for tokens, why in (
        (("--name", "j"), "either a --command or an --endpoint"),
        (("--name", "j", "--command", "x", "--endpoint", "y"), "either a --command or an --endpoint"),
        (("--name", " ", "--command", "x"), "needs a name"),
        (("--name", "j", "--command", "no-such-program-here"), "is not there: no-such-program-here"),
        (("--name", "j", "--command", "'"), "cannot be read"),
        (("--name", "j", "--endpoint", "file:///etc/passwd"), "no http address"),
        (("--name", "j", "--command", judge(), "--against", "nobody"), "no method 'nobody'"),
        (("--name", "j", "--endpoint", "http://"), "no http address"),
        (("--name", "j", "--endpoint", "http://[bad"), "no http address"),
        (("--name", "j", "--endpoint", "http://a b/"), "no http address"),
        (("--name", "\udcff", "--command", judge()), "not UTF-8 text"),
        (("--name", "j", "--command", judge(), "--timeout", "0"), "must be above 0"),
        (("--name", "j", "--command", judge(), "--timeout", "nan"), "must be above 0"),
        (("--name", "j", "--command", judge(), "--timeout", "inf"), "must be above 0"),
    ):
        told = cli("judge", tmp_path / "run", *tokens)
        assert told.code == 2
        assert why in told.err
        assert "Traceback" not in told.err


def test_a_judge_that_does_not_answer_in_time(judge):
    with pytest.raises(JudgeFailure, match=r"no reply within 0\.2 s"):
        ask_command(judge("import time; time.sleep(30)"), 0.2)(b"{}")


def test_an_endpoint_is_posted_to():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200 if body == b"{}" else 500)
            self.end_headers()
            self.wfile.write(b'{"scores": [3]}')

        def log_message(self, *args):
            pass

    with serving(Handler) as address:
        ask = ask_endpoint(f"{address}/judge", 5)
        assert ask(b"{}") == '{"scores": [3]}'
        with pytest.raises(JudgeFailure, match="HTTP status 500"):
            ask(b"[]")
    with pytest.raises(JudgeFailure):
        ask(b"{}")


def test_one_order_alone_is_no_comparison():
    one = Judgement(
        judge="j", method="m", sample="s", repeat=0, prompt_sha256="0", reply="", against="b", first="m", winner="m"
    )
    lost = Judgement(
        judge="j", method="m", sample="t", repeat=0, prompt_sha256="1", reply="", against="b", first="b", winner="b"
    )
    (row,) = summary([one, lost, lost], {"s": "d", "t": "d"})
    assert (row["won"], row["lost"], row["tied"], row["n"]) == (0, 1, 0, 1)


def test_an_endpoint_that_speaks_something_else_is_a_failure():
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"SSH-2.0-OpenSSH\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        ask = ask_endpoint(f"http://127.0.0.1:{server.getsockname()[1]}/", 5)
        with pytest.raises(JudgeFailure):
            ask(b"{}")
        thread.join()
