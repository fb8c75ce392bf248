import errno
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draftboard.errors import UserError
from draftboard.files import JsonLines, append_line, cache_dir, read_lines, write_atomic


def refuse(*arguments: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_write_atomic_makes_folders_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "plan.json"
    write_atomic(path, b"old")
    write_atomic(path, b"new")
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in path.parent.iterdir()] == ["plan.json"]


def test_write_atomic_leaves_the_old_file_when_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.json"
    write_atomic(path, b"old")
    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(UserError, match=r"plan\.json.*No space left") as caught:
        write_atomic(path, b"new")
    assert "another folder" in str(caught.value)
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["plan.json"]


def test_write_atomic_names_the_path_when_its_parent_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UserError, match=r"file.x\.json"):
        write_atomic(tmp_path / "file" / "x.json", b"")


def test_written_files_follow_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "a", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


def test_appended_lines_are_read_back_with_numbers(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    with JsonLines(path) as lines:
        lines.append(b'{"a":1}')
        lines.append(b'{"a":2}')
    append_line(path, b'{"a":3}', sync=False)
    assert list(read_lines(path)) == [(1, b'{"a":1}'), (2, b'{"a":2}'), (3, b'{"a":3}')]
    assert read_lines(path).warnings == ()


@pytest.mark.parametrize("record", [b"", b"  ", b'{"a":\n1}'])
def test_a_record_is_one_line(tmp_path: Path, record: bytes) -> None:
    with JsonLines(tmp_path / "g.jsonl") as lines, pytest.raises(ValueError, match="one non-empty line"):
        lines.append(record)


def test_a_torn_last_line_is_dropped_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":')
    found = read_lines(path)
    assert list(found) == [(1, b'{"a":1}')]
    assert len(found.warnings) == 1
    assert f"{path}:2: dropped an unfinished last line of 5 bytes" in found.warnings[0]


def test_a_last_line_without_line_feed_is_torn_even_if_it_parses(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_bytes(b'{"a":1}\n1')
    assert list(read_lines(path)) == [(1, b'{"a":1}')]


def test_a_nul_tail_is_dropped_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_bytes(b'{"a":1}\n' + b"\0" * 7)
    found = read_lines(path)
    assert list(found) == [(1, b'{"a":1}')]
    assert "7 NUL bytes" in found.warnings[0]


def test_broken_inner_lines_are_all_named(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":\n\n\xff\n{"a":2}\n')
    with pytest.raises(UserError) as caught:
        read_lines(path)
    assert [problem.partition(": ")[0] for problem in caught.value.problems] == [f"{path}:2", f"{path}:4"]


def test_byte_order_mark_crlf_and_blank_lines_are_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"a":1}\r\n\r\n{"a":2}\r\n  \n')
    assert list(read_lines(path)) == [(1, b'{"a":1}'), (3, b'{"a":2}')]


@pytest.mark.parametrize("content", [b"", b"\n", b"\0\0"])
def test_an_empty_store_has_no_lines(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "g.jsonl"
    path.write_bytes(content)
    assert list(read_lines(path)) == []


def test_a_missing_store_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.jsonl: cannot be read"):
        read_lines(tmp_path / "gone.jsonl")


@pytest.mark.parametrize("tail", [b'{"a":', b"\0" * 70_000, b'{"b":2}' + b"\0" * 3, b"x" * 200_000])
def test_opening_cuts_a_torn_tail_so_that_new_lines_stand_alone(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "g.jsonl"
    path.write_bytes(b'{"a":1}\n' + tail)
    append_line(path, b'{"a":2}')
    assert path.read_bytes() == b'{"a":1}\n{"a":2}\n'


def test_a_line_that_the_disk_refuses_is_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "g.jsonl"
    write = os.write
    with JsonLines(path, sync=False) as lines:
        lines.append(b'{"a":1}')
        written: list[int] = []

        def half(handle: int, data: bytes) -> int:
            if written:
                refuse()
            written.append(write(handle, bytes(data[:3])))
            return written[0]

        monkeypatch.setattr(os, "write", half)
        with pytest.raises(UserError, match=r"g\.jsonl.*No space left"):
            lines.append(b'{"a":2}')
        monkeypatch.setattr(os, "write", write)
        assert written == [3]
        lines.append(b'{"a":3}')
    assert path.read_bytes() == b'{"a":1}\n{"a":3}\n'


def test_a_store_in_a_place_that_cannot_hold_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        JsonLines(tmp_path)


@given(
    records=st.lists(st.dictionaries(st.text(max_size=4), st.text(max_size=8), max_size=3), max_size=5),
    cut=st.integers(min_value=0),
)
def test_whatever_a_crash_cuts_off_the_whole_lines_stay(
    tmp_path_factory: pytest.TempPathFactory, records: list[dict[str, str]], cut: int
) -> None:
    path = tmp_path_factory.mktemp("store") / "g.jsonl"
    encoded = [msgspec.json.encode(record) for record in records]
    with JsonLines(path, sync=False) as lines:
        for record in encoded:
            lines.append(record)
    data = path.read_bytes()
    kept = data[: cut % (len(data) + 1)]
    path.write_bytes(kept)
    whole = kept.count(b"\n")
    found = read_lines(path)
    assert [text for _, text in found] == encoded[:whole]
    assert bool(found.warnings) == (not kept.endswith(b"\n") and kept != b"")
    append_line(path, b"{}", sync=False)
    assert [text for _, text in read_lines(path)] == [*encoded[:whole], b"{}"]


def test_cache_dir_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTBOARD_CACHE", str(tmp_path / "c"))
    assert cache_dir() == tmp_path / "c"
    monkeypatch.setenv("DRAFTBOARD_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert cache_dir() == tmp_path / "x" / "draftboard"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_dir() == tmp_path / ".cache" / "draftboard"


@pytest.mark.skipif(os.name != "posix", reason="files are locked on POSIX only")
def test_a_store_has_one_writer_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    with JsonLines(path, sync=False) as lines:
        lines.append(b"1")
        with pytest.raises(UserError, match="another process is writing there"):
            JsonLines(path)
        lines.append(b"2")
    append_line(path, b"3", sync=False)
    assert path.read_bytes() == b"1\n2\n3\n"


@pytest.mark.skipif(os.name != "posix", reason="named pipes are of POSIX")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomic(path, b"whole")
        assert os.read(handle, 100) == b"whole"
    finally:
        os.close(handle)
    assert path.is_fifo()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files have no names here")
def test_the_name_of_an_open_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    with (tmp_path / "open").open("wb") as file:
        write_atomic(Path(f"/proc/self/fd/{file.fileno()}"), b"whole")
        assert (tmp_path / "open").read_bytes() == b"whole"
        assert os.fstat(file.fileno()).st_nlink == 1
