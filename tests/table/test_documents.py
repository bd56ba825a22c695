"""Documents as tables: a folder, a tar file of it and its lines read alike; odd bytes and odd files are no failure."""

from __future__ import annotations

import gzip
import io
import os
import socket
import tarfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softcount.errors import DataError
from softcount.sources import documents as archives
from softcount.sources import documents as reading
from softcount.sources.bytestream import TextFile, UnchangingFile, as_utf8
from softcount.sources.documents import LinesSource, is_tar, lines_of, one_document, unpacked
from softcount.sources.source import Wanted
from softcount.table import Kind, open_table
from softcount.text import Words
from table.folders import MAIL, opened, write


def rows(source: Any, keys: tuple[str, ...] = ("text", "class", "file")) -> list[tuple[Any, ...]]:
    """All rows, piece by piece as a table would read them."""
    found: list[tuple[Any, ...]] = []
    for piece in source.pieces(dict.fromkeys(keys, Wanted(numeric=False))):
        assert piece.start == len(found)
        columns = piece.load()
        for key in keys:
            columns[key].validate(full=True)
        found += zip(*(columns[key].to_pylist() for key in keys), strict=True)
        assert len(found) == piece.start + piece.n_rows
    assert len(found) == source.n_rows
    return found


def tar_of(folder: Path, path: Path, mode: str = "w:gz", top: str = "mail") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        archive.add(folder, top)
    return path


def test_a_folder_has_a_row_for_each_file_in_the_order_of_their_names(tmp_path: Path) -> None:
    source = opened(write(tmp_path / "mail", MAIL))
    assert rows(source) == [
        ("see you at the café", "ham", "ham/a"),
        ("lunch?\r\n", "ham", "ham/a.b/c"),
        ("café at noon", "ham", "ham/old/b"),
        ("win money now", "spam", "spam/1.txt"),
        ("", "spam", "spam/2.txt"),
    ]
    assert source.default_target == "class"
    assert source.notes == ("1 document was not UTF-8 and read as Latin-1",)


@pytest.mark.parametrize(("mode", "name"), [("w", "m.tar"), ("w:gz", "m.tar.gz"), ("w:gz", "anything")])
@pytest.mark.parametrize("top", ["mail", ".", "mail.2003"])
def test_a_tar_file_of_a_folder_is_the_folder(tmp_path: Path, mode: str, name: str, top: str) -> None:
    folder = write(tmp_path / "mail", MAIL)
    packed = opened(tar_of(folder, tmp_path / name, mode, top))
    assert rows(packed) == rows(opened(folder))
    assert (packed.notes, packed.default_target) == (opened(folder).notes, "class")


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_long_and_foreign_names_are_read_in_every_tar_format(tmp_path: Path, form: int) -> None:
    deep = "spam/" + "/".join(["folder"] * 20) + "/" + "n" * 70
    files = {deep: b"one", "h\u00e4m/\u00fc": b"two"}
    with tarfile.open(tmp_path / "m.tar", "w", format=form) as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    assert rows(opened(tmp_path / "m.tar")) == [("two", "h\u00e4m", "h\u00e4m/\u00fc"), ("one", "spam", deep)]


def test_a_flat_folder_has_no_classes_and_loose_files_have_none_either(tmp_path: Path) -> None:
    flat = opened(write(tmp_path / "notes", {"b": b"two", "a": b"one"}))
    assert rows(flat) == [("one", None, "a"), ("two", None, "b")]
    assert flat.default_target is None and flat.notes == ()
    mixed = opened(write(tmp_path / "mail", {**MAIL, "README": b"read me"}))
    assert rows(mixed)[0] == ("read me", None, "README")
    assert mixed.default_target == "class"
    assert "1 document lies outside of the sub-folders, without a class" in mixed.notes


def test_a_tar_file_of_a_flat_folder_has_no_classes(tmp_path: Path) -> None:
    folder = write(tmp_path / "notes", {"b": b"two", "a": b"one"})
    assert rows(opened(tar_of(folder, tmp_path / "n.tgz"))) == rows(opened(folder))


def test_hidden_files_and_folders_are_left_out_unsaid(tmp_path: Path) -> None:
    hidden = {".DS_Store": b"\0", "spam/.x": b"x", ".git/config": b"y", "__MACOSX/spam/._1": b"\0"}
    source = opened(write(tmp_path / "mail", {**MAIL, **hidden}))
    assert rows(source) == rows(opened(write(tmp_path / "plain", MAIL)))
    assert len(source.notes) == 1
    assert rows(opened(tar_of(tmp_path / "mail", tmp_path / "m.tar", "w"))) == rows(source)


def test_binary_files_are_left_out_and_named(tmp_path: Path) -> None:
    binary = {f"spam/{n}.gif": b"GIF89a\0\1" for n in range(5)}
    source = opened(write(tmp_path / "mail", {**MAIL, **binary}))
    assert [row[2] for row in rows(source)] == [row[2] for row in rows(opened(write(tmp_path / "plain", MAIL)))]
    assert "5 files hold NUL bytes, left out as binary: spam/0.gif, spam/1.gif, spam/2.gif, ..." in source.notes


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes in folders")
def test_links_pipes_and_sockets_are_no_documents(tmp_path: Path) -> None:
    folder = write(tmp_path / "mail", MAIL)
    os.symlink(tmp_path / "nowhere", folder / "spam" / "gone")
    os.symlink(folder, folder / "spam" / "round")  # a folder inside itself
    os.symlink(folder / "ham" / "a", folder / "spam" / "again")  # a link to a file is the file
    os.mkfifo(folder / "ham" / "pipe")
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(folder / "s"))
        source = opened(folder)
    assert len(rows(source)) == len(MAIL) + 1
    noted = next(note for note in source.notes if "cannot be read" in note)
    assert noted.startswith("3 files cannot be read, left out: ")
    assert "spam/gone: a broken link" in noted and "no plain file" in noted


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="this user may read every file")
def test_files_that_may_not_be_read_are_noted(tmp_path: Path) -> None:
    folder = write(tmp_path / "mail", MAIL)
    (folder / "spam" / "1.txt").chmod(0)
    assert "1 file cannot be read, left out: spam/1.txt: permission denied" in opened(folder).notes


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, "there is no file in it"),
        ({"spam/.hidden": b"x"}, "there is no file in it"),
        ({"spam/a": b"\0", "ham/b": b"\0"}, "2 files hold NUL bytes"),
    ],
)
def test_a_folder_without_documents_is_refused_saying_why(tmp_path: Path, files: dict[str, bytes], said: str) -> None:
    folder = write(tmp_path / "mail", files)
    with pytest.raises(DataError, match="holds no documents") as refused:
        opened(folder)
    assert said in str(refused.value)


def test_documents_are_a_column_of_text_whatever_they_look_like(tmp_path: Path) -> None:
    folder = write(tmp_path / "mail", {f"{c}/{n}": str(n).encode() for c in "ab" for n in range(5)})
    table = open_table(str(folder), target="class")
    assert [(spec.key, spec.kind, spec.used) for spec in table.schema.fields] == [("text", Kind.TEXT, True)]
    assert [spec.key for spec in open_table(str(folder)).schema.fields] == ["text"]
    declared = open_table(str(folder), kinds={"class": "categorical"})
    assert [spec.key for spec in declared.schema.fields] == ["text", "class"]


def test_the_column_of_documents_may_have_any_name(tmp_path: Path) -> None:
    folder = archives.FolderArchive(str(write(tmp_path / "mail", MAIL)))
    for name in ("note", "file", "class"):
        source = reading.DocumentsSource(folder, name)
        assert source.keys[0] == name and len(set(source.keys)) == len(source.keys)
        assert rows(source, (name,))[0] == ("see you at the caf\u00e9",)
        assert [spec.key for spec in open_table(source).schema.fields] == [name]


def test_an_empty_document_is_there_and_has_no_words(tmp_path: Path) -> None:
    table = open_table(str(write(tmp_path / "mail", MAIL)), target="class")
    (chunk,) = [task() for task in table.tasks()]
    bag = chunk.bags[0].toarray()
    assert bag[:, 0].tolist() == [1.0] * 5
    assert bag[:, 1:].sum(axis=1).tolist() == [5, 1, 3, 3, 0]


def test_pieces_end_by_number_and_by_size_and_change_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    folder = write(tmp_path / "mail", {f"{n % 3}/{n:03d}": b"x" * (n * n) for n in range(60)})
    whole = rows(opened(folder))
    for documents, size, held in [(7, 1 << 20, 1 << 20), (100, 500, 0), (1, 1, 2_000)]:
        monkeypatch.setattr(reading, "PIECE_DOCUMENTS", documents)
        monkeypatch.setattr(reading, "PIECE_BYTES", size)
        monkeypatch.setattr(reading, "HELD_BYTES", held)
        source = opened(folder)
        assert rows(source) == rows(source) == whole
        counts = [piece.n_rows for piece in source.pieces({})]
        assert len(counts) > 1 and max(counts) <= documents


def test_a_long_document_is_one_row(tmp_path: Path) -> None:
    folder = write(tmp_path / "mail", {"a/long": b"word " * (1 << 21), "b/short": b"word"})
    assert [len(row[0]) for row in rows(opened(folder))] == [5 << 21, 4]


def test_a_file_that_has_gone_since_is_named(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(reading, "HELD_BYTES", 0)
    folder = write(tmp_path / "mail", MAIL)
    source = opened(folder)
    (folder / "ham" / "a").unlink()
    with pytest.raises(DataError, match=r"ham/a .* can no longer be read"):
        rows(source)


def test_a_folder_called_na_is_a_class(tmp_path: Path) -> None:
    folder = write(tmp_path / "mail", {"NA/1": b"no answer", "?/2": b"what", "null/3": b"none"})
    table = open_table(str(folder), target="class")
    for task in table.tasks():
        task()
    assert table.settle().classes == ["?", "NA", "null"]
    assert table.unknown_labels == 0


def test_names_that_are_no_text_are_read_as_latin_1(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path / "mail")
    os.makedirs(folder + b"/caf\xe9")
    try:
        with open(folder + b"/caf\xe9/\xfc", "wb") as file:
            file.write(b"hello")
    except OSError:
        pytest.skip("this file system has only names in UTF-8")
    assert rows(opened(tmp_path / "mail")) == [("hello", "caf\u00e9", "caf\u00e9/\u00fc")]


def test_a_tar_file_of_tables_is_said_to_be_read_as_documents(tmp_path: Path) -> None:
    source = opened(tar_of(write(tmp_path / "data", {"a.csv": b"x,y\n1,2\n", "b.csv": b"x,y\n3,4\n"}), tmp_path / "m"))
    assert source.notes == ("each file is read as one document; for a table, name it: a.csv",)


# -- tar files with something wrong


def damaged(tmp_path: Path, change: Callable[[bytes], bytes], mode: str = "w") -> Path:
    path = tar_of(write(tmp_path / "mail", MAIL), tmp_path / "m", mode)
    path.write_bytes(change(path.read_bytes()))
    return path


@pytest.mark.parametrize(
    ("mode", "change", "said"),
    [
        ("w:gz", lambda raw: raw[:-30], "ends too early"),
        ("w:gz", lambda raw: raw[:100] + b"\xff" * 8 + raw[108:], "damaged"),
        ("w", lambda raw: raw[: raw.index(b"win money") + 3], "cut short|damaged"),
        ("w", lambda raw: raw.replace(b"mail/spam/1.txt", b"mail/spam/1.txx"), "damaged"),
        ("w", lambda raw: raw[: raw.index(b"mail/spam/1.txt") + 100], "damaged"),
    ],
)
def test_a_damaged_tar_file_is_refused(tmp_path: Path, mode: str, change: Any, said: str) -> None:
    with pytest.raises(DataError, match=said):
        opened(damaged(tmp_path, change, mode))


def test_nothing_but_plain_files_is_taken_from_a_tar_file(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "m.tar", "w") as archive:
        for name, kind in (("a/link", tarfile.SYMTYPE), ("a/hard", tarfile.LNKTYPE), ("a/dev", tarfile.CHRTYPE)):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
        for name in ("../../b/up", "/b/root"):
            info = tarfile.TarInfo(name)
            info.size = 2
            archive.addfile(info, io.BytesIO(b"hi"))
    source = opened(tmp_path / "m.tar")
    assert [row[2] for row in rows(source)] == ["root", "up"]
    assert "3 files cannot be read, left out: " in source.notes[0]
    assert sorted(os.listdir(tmp_path)) == ["m.tar"]


def test_a_size_beyond_the_end_is_refused_before_it_is_believed(tmp_path: Path) -> None:
    info = tarfile.TarInfo("a/huge")
    info.size = 1 << 50
    (tmp_path / "m.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
    with pytest.raises(DataError, match="cut short"):
        opened(tmp_path / "m.tar")


def test_a_bomb_stops_at_half_of_the_room_and_leaves_nothing(tmp_path: Path, monkeypatch: Any) -> None:
    room = tmp_path / "room"
    room.mkdir()
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(bytes(32 << 20)))
    monkeypatch.setattr("tempfile.tempdir", str(room))
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=16 << 20))
    with pytest.raises(DataError, match="half of what is free"):
        unpacked(UnchangingFile(str(path), "bomb"))
    assert os.listdir(room) == []


def test_the_unpacked_copy_goes_with_the_source(tmp_path: Path, monkeypatch: Any) -> None:
    path = tar_of(write(tmp_path / "mail", MAIL), tmp_path / "m.tgz")
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(room))
    source = opened(path)
    assert len(os.listdir(room)) == 1
    del source
    assert os.listdir(room) == []


@pytest.mark.parametrize(
    "content", [b"", b"a,b\n1,2\n", b"x" * 600, bytes(600), gzip.compress(b"a,b\n1,2\n", mtime=0), b"\x1f\x8b"]
)
def test_other_files_are_no_tar_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "f").write_bytes(content)
    assert not is_tar(str(tmp_path / "f"))


# -- bytes, lines and whole files


@given(st.binary(max_size=40))
def test_bytes_become_text_by_the_stated_rule(raw: bytes) -> None:
    try:
        expected, latin = raw.decode("utf-8").removeprefix("\ufeff"), False
    except UnicodeDecodeError:
        expected, latin = raw.decode("latin-1"), True
    assert as_utf8(raw) == (expected.encode(), latin)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=8))
def test_strings_are_what_they_were(documents: list[str]) -> None:
    array = Words.of_bytes([document.encode() for document in documents]).to_arrow()
    array.validate(full=True)
    assert array.to_pylist() == documents


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=6))
def test_lines_do_not_depend_on_blocks(raw: bytes, cuts: list[int]) -> None:
    ends = [0, *sorted(cuts), len(raw)]
    blocks = [raw[start:stop] for start, stop in pairwise(ends) if start < stop]
    expected = [line.removesuffix(b"\r") for line in raw.split(b"\n")]
    assert list(lines_of(blocks, "here")) == (expected if raw and not raw.endswith(b"\n") else expected[:-1])


def lines_source(tmp_path: Path, content: bytes) -> LinesSource:
    path = tmp_path / "lines"
    path.write_bytes(content)
    return LinesSource(TextFile(str(path)))


def test_each_line_is_a_document_and_an_empty_line_an_empty_one(tmp_path: Path) -> None:
    source = lines_source(tmp_path, b'one, two\r\n\ncaf\xe9\n"quo"ted\0\nlast')
    assert rows(source, ("text",)) == [("one, two",), ("",), ("caf\u00e9",), ('"quo"ted\0',), ("last",)]
    assert source.notes == ("1 line was not UTF-8 and read as Latin-1", "lines with NUL bytes, which part words: 1")
    packed = lines_source(tmp_path, gzip.compress(b"one\ntwo\n"))
    assert rows(packed, ("text",)) == [("one",), ("two",)]
    with pytest.raises(DataError, match="no lines"):
        lines_source(tmp_path, b"")


def test_a_binary_file_is_no_file_of_lines(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is binary: 2 of its 3 lines hold NUL bytes"):
        lines_source(tmp_path, b"GIF\0\n\0\nplain\n")


def test_a_mark_within_a_file_of_lines_belongs_to_its_line(tmp_path: Path) -> None:
    source = lines_source(tmp_path, "\ufeffone\n\ufefftwo\n".encode())
    assert rows(source, ("text",)) == [("one",), ("\ufefftwo",)]


def limited(monkeypatch: Any, most: int) -> None:
    for module in ("bytestream", "documents"):
        monkeypatch.setattr(f"softcount.sources.{module}.LONGEST", most)
    monkeypatch.setattr("softcount.sources.bytestream.BLOCK", 64)


def test_a_line_or_a_document_too_long_is_refused_by_its_number_or_name(tmp_path: Path, monkeypatch: Any) -> None:
    limited(monkeypatch, 200)
    with pytest.raises(DataError, match=r"line 3 of .*lines is longer than"):
        lines_source(tmp_path, b"one\ntwo\n" + b"x" * 900 + b"\nfour\n")
    with pytest.raises(DataError, match=r"lines is longer than"):
        one_document(TextFile(str(tmp_path / "lines")))
    folder = write(tmp_path / "mail", MAIL | {"spam/long.txt": b"free " * 100})
    for place in (folder, tar_of(folder, tmp_path / "m.tar", "w"), tar_of(folder, tmp_path / "m.tgz")):
        with pytest.raises(DataError, match=r"spam/long\.txt.* is longer than"):
            opened(place)


def test_a_binary_file_of_any_length_is_left_out(tmp_path: Path, monkeypatch: Any) -> None:
    limited(monkeypatch, 200)
    folder = write(tmp_path / "mail", MAIL)
    (folder / "spam" / "film").write_bytes(b"\0" * 5_000)
    for place in (folder, tar_of(folder, tmp_path / "m.tgz")):
        assert any("left out as binary: spam/film" in note for note in opened(place).notes)


def test_a_name_of_any_length_in_a_tar_file_is_refused(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    (tmp_path / "m.tar").write_bytes(info.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
    with pytest.raises(DataError, match=r"m\.tar is a tar file with a name of"):
        opened(tmp_path / "m.tar")


@pytest.mark.parametrize("form", ["folder", "tar", "tgz"])
def test_documents_that_change_while_they_are_read_are_refused(tmp_path: Path, monkeypatch: Any, form: str) -> None:
    monkeypatch.setattr("softcount.sources.documents.HELD_BYTES", 0)
    folder = write(tmp_path / "mail", MAIL)
    place = folder if form == "folder" else tar_of(folder, tmp_path / f"m.{form}", "w:gz" if form == "tgz" else "w")
    source = opened(place)
    before = rows(source)
    path = next(iter(sorted(folder.rglob("*.txt")))) if form == "folder" else place
    path.write_bytes(path.read_bytes() + b"x")
    if form == "tgz":  # read from its copy, which nobody changes
        assert rows(source) == before
        return
    with pytest.raises(DataError, match="changed while"):
        rows(source)


def test_a_whole_file_is_one_document(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"first\nsecond \xff\n")
    source = one_document(TextFile(str(tmp_path / "f")))
    assert source.table.to_pylist() == [{"text": "first\nsecond \u00ff\n"}]
    assert source.notes == ("the document is not UTF-8 and was read as Latin-1",)


def test_20_newsgroups_opens_from_its_tar_file(data: Callable[[str], Path]) -> None:
    source = opened(data("newsgroups20_19997") / "20_newsgroups.tar.gz")
    assert (source.n_rows, len(set(source.classes))) == (19_997, 20)
    assert source.files[0] == "alt.atheism/49960"
    assert source.notes == ("73 documents were not UTF-8 and read as Latin-1",)
