"""BIF files: read as they are found, written so that they come back, refused with a line where they make no sense."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from networks.drawn_networks import HOSTILE, hostile_network, plain_network, same
from softcount.errors import DataError, SoftcountError
from softcount.files.bif import bif_text, read_bif, read_network, write_network

RAIN = """\
network rain {
}
variable Rain {
  type discrete [ 2 ] { no, yes };
}
variable Wet {
  type discrete [ 3 ] { dry, damp, wet };
}
probability ( Rain ) {
  table 0.75, 0.25;
}
probability ( Wet | Rain ) {
  (no) 0.5, 0.25, 0.25;
  (yes) 0.0, 0.125, 0.875;
}
"""

WET = [[0.5, 0.25, 0.25], [0.0, 0.125, 0.875]]


def refusal(text: str) -> str:
    with pytest.raises(DataError) as caught:
        read_bif(text, "rain.bif")
    return str(caught.value)


def changed(old: str, new: str) -> str:
    assert RAIN.count(old) == 1
    return RAIN.replace(old, new)


# What is in the wild


@pytest.mark.parametrize(
    "text",
    [
        RAIN,
        RAIN.replace("\n", "\r\n"),
        RAIN.replace("\n", "\r"),
        "\ufeff" + RAIN,
        RAIN.replace(",", " "),
        RAIN.replace("\n", " "),
        changed("(no) 0.5, 0.25, 0.25;\n  (yes) 0.0, 0.125, 0.875;", "(yes) 0 1.25e-1 .875;\n(no) +5E-1,0.25,25e-2;"),
        changed("(no) 0.5, 0.25, 0.25;", "default 0.5 0.25 0.25;"),
        changed("(no) 0.5, 0.25, 0.25;\n  (yes) 0.0, 0.125, 0.875;", "table 0.5 0.0  0.25 0.125  0.25 0.875;"),
        changed("(no) 0.5", "// nothing; to (see\n /* here } either */ (no) /* 1 */ 0.5"),
        changed("0.25, 0.25;", "0.25 // p(damp); \n 0.25 // p(wet)\n ;"),
        changed("0.125, 0.875;", "0.125, 0.875"),
        changed("Wet | Rain", '"Wet" "Rain"'),
        changed("{ dry, damp, wet };", '{ "dry" "damp" "wet" };\n property "position = (7, 3)" ;\n property x = a/b;'),
        changed("network rain {", 'network "rain; }" {\n property author is { me };'),
        changed("discrete [ 2 ]", "discrete[2]"),
        changed("discrete [ 2 ]", "discrete"),
        RAIN[RAIN.index("variable") :],
        RAIN[RAIN.index("probability") :] + RAIN[: RAIN.index("probability")],
    ],
)
def test_spellings_that_mean_the_same_network(text: str) -> None:
    network = read_bif(text)
    rain, wet = network.graph.place("Rain"), network.graph.place("Wet")
    assert network.levels[rain] == ("no", "yes")
    assert network.levels[wet] == ("dry", "damp", "wet")
    assert network.graph.parents[wet] == (rain,)
    assert network.tables[rain].tolist() == [0.75, 0.25]
    assert network.tables[wet].tolist() == WET


@pytest.mark.parametrize("odd", ["<5", "1/2", "-", "2.5-5", "-3", "1e5", "x.y z", "50%", "20_MG/L", ">=10", "(2.5,5]"])
def test_odd_names_need_no_quotes(odd: str) -> None:
    text = RAIN.replace("yes", odd)
    network = read_bif(text)
    assert network.levels[0] == ("no", odd)
    assert network.tables[1].tolist() == WET


def test_intervals_need_no_quotes() -> None:
    text = """
    variable a { type discrete [ 3 ] { [-1.5,0], (0,2], (2, inf) }; } variable b { type discrete [2] { [0,1] (1,2] }; }
    probability ( a ) { table 0.5, 0.25, 0.25; }
    probability ( b | a ) { ((0,2]) 0.5, 0.5; ([-1.5,0]) 0.25, 0.75; ( (2, inf) ) 1, 0; }
    """
    network = read_bif(text)
    assert network.levels == (("[-1.5,0]", "(0,2]", "(2, inf)"), ("[0,1]", "(1,2]"))
    assert network.tables[1].tolist() == [[0.25, 0.75], [0.5, 0.5], [1, 0]]
    assert same(read_bif(bif_text(network)), network)


@pytest.mark.parametrize("odd", ["My Rain", "rain-1/2", "R.a.i.n", "<rain>"])
def test_odd_names_of_nodes_need_no_quotes(odd: str) -> None:
    assert read_bif(RAIN.replace("Rain", odd)).graph.names[0] == odd


def test_a_table_of_two_parents_has_the_last_parent_fastest_and_the_node_slowest() -> None:
    text = """
    variable a { type discrete [2] { a0 a1 }; } variable b { type discrete [3] { b0 b1 b2 }; }
    variable c { type discrete [2] { c0 c1 }; }
    probability ( a ) { table .5 .5; } probability ( b ) { table .2 .3 .5; }
    probability ( c | a, b ) { table .1 .2 .3 .4 .5 .6  .9 .8 .7 .6 .5 .4; }
    """
    table = read_bif(text).tables[2]
    assert table[:, :, 0].tolist() == [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]


@pytest.mark.parametrize(("values", "total"), [("0.5, 0.25, 0.2499", 0.9999), ("0.5, 0.25, 0.2501", 1.0001)])
def test_rounding_in_a_file_is_mended(values: str, total: float) -> None:
    network = read_bif(changed("0.5, 0.25, 0.25", values))
    assert network.tables[1][0].sum() == pytest.approx(1, abs=1e-15)
    assert network.tables[1][0, 0] == pytest.approx(0.5 / total, rel=1e-12)
    assert network.tables[1][1].tolist() == WET[1]


def test_text_that_is_not_utf8_is_read_as_latin1(tmp_path: Path) -> None:
    (tmp_path / "old.bif").write_bytes(RAIN.replace("damp", "gedämpft").encode("latin-1"))
    assert read_network(tmp_path / "old.bif").levels[1][1] == "gedämpft"


# Written and read again


@given(st.integers(0, 10_000))
def test_a_written_network_is_read_with_the_same_bits(seed: int) -> None:
    network = plain_network(seed)
    assert same(read_bif(bif_text(network)), network)


def test_hostile_names_come_back_exactly(tmp_path: Path) -> None:
    network = hostile_network(HOSTILE)
    assert same(read_bif(bif_text(network)), network)
    write_network(network, tmp_path / "hostile.bif")
    assert same(read_network(tmp_path / "hostile.bif"), network)


@given(st.lists(st.text(st.characters(), max_size=6), min_size=1, max_size=4, unique=True))
def test_any_names_come_back_exactly(names: list[str]) -> None:
    network = hostile_network(names)
    assert same(read_bif(bif_text(network)), network)


def test_plain_names_are_written_plainly() -> None:
    assert bif_text(read_bif(RAIN)) == RAIN.replace("network rain", "network unknown")


def test_only_printable_text_is_written() -> None:
    assert bif_text(hostile_network(HOSTILE)).replace("\n", "").isprintable()


# Files that make no sense


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("0.5, 0.25, 0.25", "0.5, 0.25, 0.15", 13, "'Wet' where Rain = 'no' sums to 0.9 instead of 1"),
        ("0.75, 0.25", "0.75, 0.2", 10, "'Rain' sums to 0.95"),
        ("0.75, 0.25", "1.25, -0.25", 10, "'Rain' holds 1.25, which is not a probability"),
        ("0.75, 0.25", "nan, 0.25", 10, "'Rain' holds nan"),
        ("0.75, 0.25", "0.75, x", 10, "'x', which is not a number"),
        ("0.75, 0.25", "0.7_5, 0.25", 10, "'0.7_5', which is not a number"),
        ("0.75, 0.25", "0.75", 10, "needs 2 probabilities, not 1"),
        ("0.5, 0.25, 0.25", "0.5, 0.5", 13, "where Rain = 'no' needs 3 probabilities, not 2"),
        ("(yes)", "(maybe)", 14, "'maybe', which is not a level of 'Rain' (it has 'no', 'yes')"),
        ("(yes)", "(yes, no)", 14, "an entry for 2 parents instead of 1"),
        ("(yes)", "(no)", 14, "where Rain = 'no' is given twice"),
        ("  (yes) 0.0, 0.125, 0.875;\n", "", 12, "where Rain = 'yes' is not given"),
        ("(yes)", "table 1 1 0 0 0 0; (yes)", 14, "as a whole and by its configurations"),
        ("Wet | Rain", "Wet | Snow", 12, "no node 'Snow'. The file declares 'Rain', 'Wet'"),
        ("Wet | Rain", "Wet | Wet", 12, "node 'Wet' stands twice"),
        ("Wet | Rain", "Rain", 12, "'Rain' are given twice"),
        ("variable Wet", "variable Rain", 6, "'Rain' is declared twice, first on line 3"),
        ("dry, damp, wet", "dry, wet, wet", 6, "two levels called 'wet'"),
        ("[ 3 ]", "[ 1000000000000 ]", 7, "'1000000000000' levels are announced and 3 given"),
        ("discrete [ 2 ]", "continuous", 4, "only 'type discrete' is known"),
        ("  type discrete [ 2 ] { no, yes };\n", "", 3, "'Rain' has no levels"),
        ("network rain", "netwrok rain", 1, "no block begins here"),
        ("0.875;", '0.875; "', 14, "the block of line 12 is not closed"),
        ("0.875;", "0.875; /*", 14, "a comment begins with /* and never ends"),
        ("(yes)", "perhaps", 14, "not 'perhaps'"),
        ("variable Wet", "variable Wet {} {", 6, "'Wet' has no levels"),
        ("probability ( Rain )", "probability ( )", 9, "name is missing"),
        ("probability ( Rain )", "probability Rain", 9, "'(' is missing"),
        ("  type discrete [ 2 ]", "  types discrete [ 2 ]", 4, "not 'types'"),
    ],
)
def test_bad_files_are_refused_with_the_line(old: str, new: str, line: int, said: str) -> None:
    message = refusal(changed(old, new))
    assert message.startswith(f"rain.bif, line {line}: ")
    assert said in message


def test_a_circle_is_refused() -> None:
    text = changed("probability ( Rain ) {\n  table 0.75, 0.25;", "probability ( Rain | Wet ) {\n  default 0.75 0.25;")
    assert refusal(text) == "rain.bif, line 10: the edges form a cycle: 'Rain' -> 'Wet' -> 'Rain'."


def test_every_truncated_file_is_refused() -> None:
    end = RAIN.rindex("}")
    for length in range(end):
        with pytest.raises(DataError, match=r"line \d+|declares no node"):
            read_bif(RAIN[:length])
    assert read_bif(RAIN[: end + 1])


def test_an_absurd_table_is_refused_before_it_is_made() -> None:
    switches = "".join(f"variable v{i} {{ type discrete [2] {{ a b }}; }}\n" for i in range(31))
    roots = "".join(f"probability ( v{i} ) {{ table 1 0; }}\n" for i in range(30))
    parents = " ".join(f"v{i}" for i in range(30))
    message = refusal(f"{switches}{roots}probability ( v30 | {parents} ) {{ default 1 0; }}")
    assert message.startswith("rain.bif, line 62: node 'v30' would have 2,147,483,648 probabilities")


def test_more_parents_than_an_array_has_axes_are_refused() -> None:
    ones = "".join(f"variable v{i} {{ type discrete [1] {{ a }}; }}\n" for i in range(70))
    message = refusal(f"{ones}probability ( v69 | {' '.join(f'v{i}' for i in range(69))} ) {{ default 1; }}")
    assert "69 parents" in message


def test_text_that_is_no_network_is_refused(tmp_path: Path) -> None:
    for text in ("", "// nothing\n", "network x { }"):
        with pytest.raises(DataError, match="declares no node"):
            read_bif(text)
    assert "no block begins here" in refusal("age,income\n37,low\n")
    with pytest.raises(DataError, match="no such file"):
        read_network(tmp_path / "none.bif")
    with pytest.raises(DataError, match="folder"):
        read_network(tmp_path)
    whole = gzip.compress(RAIN.encode())
    (tmp_path / "cut.bif.gz").write_bytes(whole[:-20])
    with pytest.raises(DataError, match="ends too early"):
        read_network(tmp_path / "cut.bif.gz")


def test_a_pipe_is_read_and_what_unpacks_to_too_much_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = Thread(target=(tmp_path / "pipe").write_bytes, args=[gzip.compress(RAIN.encode())])
    writer.start()
    assert same(read_network(tmp_path / "pipe"), read_bif(RAIN))
    writer.join()
    monkeypatch.setattr("softcount.files.bif.LONGEST_NETWORK", 1 << 20)
    (tmp_path / "bomb.bif.gz").write_bytes(gzip.compress(RAIN.encode() + bytes(5 << 20)))
    with pytest.raises(DataError, match="longer than 1 MB"):
        read_network(tmp_path / "bomb.bif.gz")


def test_the_ending_of_a_written_file_must_say_its_format(tmp_path: Path) -> None:
    for name in ("rain.net", "rain.xml", "rain.xmlbif.gz"):
        with pytest.raises(DataError, match=r"End it in \.bif or \.bif\.gz"):
            write_network(read_bif(RAIN), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_xmlbif_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "dogs.xml").write_text('\ufeff\n<?xml version="1.0"?>\n<BIF VERSION="0.3"></BIF>\n')
    with pytest.raises(
        DataError, match=r"dogs\.xml is XML, and XMLBIF networks are not read\. Save the network as BIF"
    ):
        read_network(tmp_path / "dogs.xml")


PIECES = [*"{}()|;,[]-\n", "\\", '"', "//", "/*", "*/", "table", "default", "0.5", "nan"]


def test_mutated_files_give_a_network_or_one_of_our_errors() -> None:
    rng = np.random.default_rng(11)
    hostile = bif_text(hostile_network(HOSTILE[:4]))
    refused = 0
    for turn in range(600):
        text = RAIN if turn % 2 else hostile
        for _ in range(rng.integers(1, 4)):
            start, cut = rng.integers(0, len(text)), int(rng.choice([0, 1, 5, 40]))
            text = text[:start] + str(rng.choice([*PIECES, ""])) + text[start + cut :]
        try:
            assert all(np.allclose(table.sum(-1), 1, atol=1e-9) for table in read_bif(text).tables)
        except SoftcountError as error:
            refused += 1
            assert "line" in str(error) or "declares no node" in str(error)
    assert refused > 200


def test_endlessly_repeated_marks_are_refused() -> None:
    for mark in ("/*", '"', "{", "(", "//\n", "variable ", "probability (", "[ ", '"\\'):
        with pytest.raises(DataError):
            read_bif("variable x " + mark * 100_000)


def test_text_and_paths_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert same(read_network(RAIN), read_bif(RAIN))
    Path("odd{name}.bif").write_text(RAIN)
    assert read_network("odd{name}.bif").sizes == (2, 3)
    with pytest.raises(DataError, match="no such file"):
        read_network("")
