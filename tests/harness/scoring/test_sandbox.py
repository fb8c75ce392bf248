"""What a program may do, and what it may not: hostile programs, each in a child process of its own."""

import json
import sys
import time
from pathlib import Path

import pytest

from draftboard.errors import UserError
from draftboard.scoring import sandbox as module
from draftboard.scoring.sandbox import LIMITS, Limits, require_sandbox, run_program

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="code is run on Linux only"),
    pytest.mark.usefixtures("sandbox"),
]

SHORT = Limits(cpu_s=1, wall_s=3)


def outcome(code: str, tests: str = "pass\n", *, limits: Limits = LIMITS) -> str:
    return run_program([[code]], tests, limits=limits)


def test_a_program_that_passes_and_one_that_does_not():
    assert outcome("def add(a, b):\n    return a + b\n", "assert add(1, 2) == 3\n") == "passed"
    assert outcome("def add(a, b):\n    return a - b\n", "assert add(1, 2) == 3\n") == "failed"
    assert outcome("def add(a, b):\n    return a / 0\n", "assert add(1, 2) == 3\n") == "error"


def test_the_first_program_that_compiles_is_run():
    programs = [["def f(:\n"], ["x = 1\n", "y = ("], ["x = 1\n", "y = 2\n"], ["x = 5\n", "y = 5\n"]]
    assert run_program(programs, "assert (x, y) == (1, 2)\n") == "passed"
    assert run_program([["def f(:\n"]], "pass\n") == "syntax"
    assert run_program([["x = '\\0'\0"]], "pass\n") == "syntax"


@pytest.mark.parametrize(
    "code",
    [
        "import sys\nsys.exit(0)\n",
        "import os\nos._exit(0)\n",
        "raise SystemExit\n",
        "def f():\n    import os\n    os._exit(0)\n",
        "import os\nos.closerange(3, 64)\n",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
        "import os\nfor fd in range(3, 64):\n"
        '    try: os.write(fd, b\'{"outcome": "passed"}\')\n    except OSError: pass\nos._exit(0)\n',
    ],
    ids=["exit", "_exit", "raise", "in-a-call", "closes-all", "kills-itself", "claims-success"],
)
def test_leaving_early_is_no_success(code):
    assert outcome(code, "if 'f' in dir(): f()\nassert True\n") != "passed"


@pytest.mark.parametrize(
    "code",
    ["while True:\n    pass\n", "import time\ntime.sleep(1000)\n", "while True:\n    print('x' * 100_000)\n"],
    ids=["loops", "sleeps", "prints"],
)
def test_endless_programs_are_ended(code):
    begun = time.monotonic()
    assert outcome(code, limits=SHORT) == "timeout"
    assert time.monotonic() - begun < SHORT.wall_s + 15


@pytest.mark.parametrize(
    "code",
    [
        "import os\nos.fork()\n",
        "import os\nwhile True:\n    os.fork()\n",
        "import subprocess\nsubprocess.run(['/bin/true'])\n",
        "import multiprocessing\np = multiprocessing.Process(target=print)\np.start()\np.join()\n",
        "import threading, time\nwhile True:\n    threading.Thread(target=time.sleep, args=(100,)).start()\n",
        "x = bytearray(3 << 30)\n",
        "x = []\nwhile True:\n    x.append(' ' * (1 << 24))\n",
        "with open('big', 'wb') as file:\n    while True:\n        file.write(bytes(1 << 20))\n",
        "i = 0\nwhile True:\n    i += 1\n    with open(str(i), 'wb') as file:\n        file.write(bytes(1 << 22))\n",
        "files = []\nwhile True:\n    files.append(open(__file__ if '__file__' in dir() else 'x', 'ab'))\n",
        "input()\n",
        "import sys\nassert sys.stdin.read() == ''\nraise ValueError\n",
    ],
    ids=[
        "fork", "fork-bomb", "subprocess", "multiprocessing", "thread-bomb", "memory", "memory-bit-by-bit",
        "big-file", "many-files", "open-files", "input", "stdin",
    ],
)  # fmt: skip
def test_greedy_programs_fail(code):
    # On a busy machine the time may be over before the memory is.
    assert outcome(code, limits=Limits(cpu_s=5, wall_s=20)) in ("error", "timeout")


@pytest.mark.parametrize(
    "attempt",
    [
        "__import__('socket').create_connection(('127.0.0.1', {port}), timeout=2)",
        "__import__('socket').create_connection(('192.0.2.1', 80), timeout=2)",
        "open({outside!r}, 'w')",
        "__import__('os').remove({outside!r})",
        "__import__('os').chmod({outside!r}, 0)",
        "__import__('os').mkdir({outside!r} + '-folder')",
        "__import__('os').kill({parent}, 0)",
        "open('/proc/{parent}/environ', 'rb').read()",
        "open('/dev/zero', 'rb')",
        "__import__('numpy')",
        "__import__('draftboard')",
    ],
)
def test_out_of_reach(attempt, tmp_path):
    import os
    import socket

    outside = tmp_path / "precious"
    outside.write_text("kept")
    with socket.create_server(("127.0.0.1", 0)) as server:
        told = attempt.format(port=server.getsockname()[1], outside=str(outside), parent=os.getpid())
        code = f"try:\n    {told}\nexcept (OSError, ImportError):\n    reached = False\nelse:\n    reached = True\n"
        assert outcome(code, "assert not reached\n") == "passed"
    assert outside.read_text() == "kept"
    assert outside.stat().st_mode & 0o400
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious"]


@pytest.mark.parametrize(
    "code",
    [
        "import os\nassert set(os.environ) <= {'PYTHONHASHSEED', 'LC_CTYPE'}\n",
        "import os\nassert os.listdir('.') == []\nopen('note', 'w').write('x')\nassert open('note').read() == 'x'\n",
        "import tempfile\nassert tempfile.mkdtemp()\n",
        "import threading\nt = threading.Thread(target=print)\nt.start()\nt.join()\n",
        "import os\nopen(os.devnull, 'w').write('x')\nos.urandom(8)\n",
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n",
        "import math, re, collections, itertools, functools, hashlib, heapq, bisect, random, statistics, fractions\n",
        "print('x' * 1_000_000)\nimport sys\nprint('y' * 1_000_000, file=sys.stderr)\n",
        "if __name__ == '__main__':\n    raise ValueError\n",
    ],
    ids=["environment", "folder", "temporary", "threads", "devices", "dataclass", "library", "output", "main-block"],
)
def test_what_a_program_may_do(code):
    assert outcome(code) == "passed"


def test_sets_have_the_same_order_in_every_run():
    """An answer that lists a set passes or fails the same in every arm."""
    order = {outcome("x = list({'a', 'b', 'c', 'd', 'e', 'f'})\n", "assert x == sorted(x)\n") for _ in range(3)}
    assert len(order) == 1


def test_the_parents_environment_and_folder_stay_outside(monkeypatch, tmp_path):
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    monkeypatch.chdir(tmp_path)
    code = "import os\nassert 'SECRET_TOKEN' not in os.environ\nopen('left', 'w').close()\n"
    assert outcome(code) == "passed"
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert outcome("import os\nos.mkdir('deep')\nopen('deep/note', 'w').close()\nos.chmod('deep', 0)\n") == "passed"
    assert list(tmp_path.iterdir()) == []


def test_a_machine_that_cannot_shut_code_off_is_refused(monkeypatch):
    monkeypatch.setattr(module, "_refusal", lambda way: "no new namespaces: Operation not permitted")
    with pytest.raises(UserError, match="no new namespaces: Operation not permitted") as told:
        require_sandbox(True)
    assert "--run-code --unisolated" in str(told.value)


def test_why_a_child_could_not_be_shut_off_comes_back():
    told = json.dumps({"refused": "no new namespaces: Operation not permitted"}).encode()
    assert module._verdict(99, told, "token") == ("refused", "no new namespaces: Operation not permitted")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (0, b""),
        (0, b"junk"),
        (0, b"[]"),
        (0, b'{"outcome": "passed", "secret": "other"}'),
        (0, b'{"outcome": "passed"}'),
    ],
)
def test_no_word_or_a_false_one_is_no_success(code, told):
    assert module._verdict(code, told, "token") == ("error", "")


def test_without_isolation_limits_still_hold():
    require_sandbox("unisolated")
    assert run_program([["x = 1\n"]], "assert x == 1\n", run_code="unisolated") == "passed"
    for code in ("import os\nos.fork()\n", "x = bytearray(3 << 30)\n", "import sys\nsys.exit(0)\n"):
        assert run_program([[code]], "pass\n", run_code="unisolated") == "error"
    assert run_program([["while True: pass\n"]], "pass\n", run_code="unisolated", limits=SHORT) == "timeout"


def test_the_child_imports_nothing_of_ours():
    script = (Path(module.__file__).with_name("confined.py")).read_text(encoding="utf-8")
    assert "draftboard" not in script
