"""XMLBIF files: read without fetching or expanding anything, written so that they come back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from networks.drawn_networks import HOSTILE, hostile_network, plain_network, same
from softcount.errors import DataError, SoftcountError
from softcount.files.network_file import read_network, write_network
from softcount.files.xmlbif import read_xmlbif, xmlbif_text

DOGS = """\
<?xml version="1.0"?>
<!DOCTYPE BIF [
  <!ELEMENT BIF ( NETWORK )*>
  <!ATTLIST BIF VERSION CDATA #REQUIRED>
]>
<BIF VERSION="0.3">
<NETWORK>
<NAME>dogs</NAME>
<VARIABLE TYPE="nature">
  <NAME> family-out </NAME>
  <OUTCOME>true</OUTCOME>
  <OUTCOME>false</OUTCOME>
  <PROPERTY>position = (1, 2)</PROPERTY>
</VARIABLE>
<VARIABLE TYPE="nature">
  <NAME>light-on</NAME>
  <OUTCOME>true</OUTCOME>
  <OUTCOME>false</OUTCOME>
</VARIABLE>
<DEFINITION>
  <FOR>family-out</FOR>
  <TABLE>0.15 0.85</TABLE>
</DEFINITION>
<DEFINITION>
  <FOR>light-on</FOR>
  <GIVEN>family-out</GIVEN>
  <TABLE>0.6 <!-- lit --> 0.4
   0.05 0.95</TABLE>
</DEFINITION>
</NETWORK>
</BIF>
"""


def refusal(text: str | bytes) -> str:
    with pytest.raises(DataError) as caught:
        read_xmlbif(text, "dogs.xml")
    return str(caught.value)


def changed(old: str, new: str) -> str:
    assert DOGS.count(old) == 1
    return DOGS.replace(old, new)


@pytest.mark.parametrize("text", [DOGS, DOGS.replace("\n", "\r\n"), "\ufeff" + DOGS, "\n" + DOGS])
def test_a_document_is_read_as_text_and_from_a_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "dogs.bif").write_bytes(text.encode())  # told by what it holds, not by its name
    for network in (read_network(text), read_network(tmp_path / "dogs.bif")):
        assert network.graph.edges == [("family-out", "light-on")]
        assert network.levels[0] == ("true", "false")
        assert network.tables[1].tolist() == [[0.6, 0.4], [0.05, 0.95]]


def test_the_encoding_that_is_declared_is_used() -> None:
    text = DOGS.replace('"1.0"', '"1.0" encoding="iso-8859-1"').replace("true", "wär").encode("latin-1")
    assert read_xmlbif(text).levels[0] == ("wär", "false")


@given(st.integers(0, 10_000))
def test_a_written_network_is_read_with_the_same_bits(seed: int) -> None:
    network = plain_network(seed)
    assert same(read_xmlbif(xmlbif_text(network)), network)


def test_hostile_names_come_back_exactly(tmp_path: Path) -> None:
    names = [name for name in HOSTILE if "\x00" not in name]
    assert len(names) >= 15
    network = hostile_network(names)
    assert same(read_xmlbif(xmlbif_text(network)), network)
    write_network(network, tmp_path / "hostile.xmlbif.gz")
    assert same(read_network(tmp_path / "hostile.xmlbif.gz"), network)


@given(st.lists(st.text(st.characters(), max_size=6), min_size=1, max_size=4, unique=True))
def test_any_names_come_back_exactly_or_are_refused(names: list[str]) -> None:
    network = hostile_network(names)
    try:
        text = xmlbif_text(network)
    except DataError as error:
        assert "XML has no way to write" in str(error)
        assert any(ord(char) < 32 or char in "\ufffe\uffff" or "\ud800" <= char <= "\udfff" for char in "".join(names))
    else:
        assert same(read_xmlbif(text.encode()), network)


def test_names_that_xml_cannot_hold_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    for bad in ("\x00", "\x1b[31m", "\ud800", "\uffff"):
        with pytest.raises(DataError, match="Write the network as BIF"):
            write_network(hostile_network([bad]), tmp_path / "x.xml")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ('<!ENTITY a "true"> <!ENTITY b "&a;&a;&a;&a;">', "declares entities"),
        ('<!ENTITY a SYSTEM "file:///etc/passwd">', "declares entities"),
        ('<!ENTITY % a SYSTEM "http://localhost/x.dtd"> %a;', "declares entities"),
    ],
)
def test_entities_are_refused(declared: str, said: str) -> None:
    message = refusal(changed("<!ELEMENT BIF ( NETWORK )*>", declared))
    assert message.startswith("dogs.xml, line 3: ")
    assert said in message


def test_nothing_is_fetched_and_nothing_skipped() -> None:
    outside = changed("<!DOCTYPE BIF [", '<!DOCTYPE BIF SYSTEM "http://localhost:1/bif.dtd" [')
    assert read_xmlbif(outside).sizes == (2, 2)
    assert "does not declare" in refusal(outside.replace(" family-out ", " fam&x;ily-out "))
    assert "undefined entity" in refusal(changed(" family-out ", " fam&x;ily-out "))


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("0.15 0.85", "0.15 0.75", 22, "'family-out' sums to 0.9"),
        ("0.05 0.95", "0.05 0.85", 27, "where family-out = 'false' sums to 0.9"),
        ("0.15 0.85", "0.15 x", 22, "'x', no number"),
        ("0.15 0.85", "0.15 0.75 0.1", 22, "needs 2 probabilities, not 3"),
        ("<GIVEN>family-out", "<GIVEN>family", 24, "no node 'family'"),
        ("<GIVEN>family-out", "<GIVEN>light-on", 24, "stands twice"),
        ("<NAME>light-on", "<NAME>family-out", 15, "declared twice"),
        ("  <FOR>light-on</FOR>\n", "", 24, "one FOR, not 0"),
        ("<TABLE>0.15 0.85</TABLE>", "", 20, "one TABLE, not 0"),
        ("<TABLE>0.15 0.85</TABLE>", "<TABLE><B>0.15</B></TABLE>", 22, "TABLE holds text"),
        ("</NETWORK>\n</BIF>", "</NETWORK>", 31, "no whole XML document"),
        ("</BIF>", "</BIFF>", 31, "mismatched tag"),
        ("0.15 0.85", "0.15 0.85<", 22, "no whole XML document"),
    ],
)
def test_bad_documents_are_refused_with_the_line(old: str, new: str, line: int, said: str) -> None:
    message = refusal(changed(old, new))
    assert message.startswith(f"dogs.xml, line {line}: ")
    assert said in message


def test_other_xml_and_other_kinds_of_nodes_are_refused() -> None:
    assert "begins with <BIF>, not with <HTML>" in refusal("<html></html>")
    assert "declares no node" in refusal("<BIF/>")
    decision = DOGS.replace('<VARIABLE TYPE="nature">\n  <NAME>light', '<VARIABLE TYPE="decision">\n  <NAME>light')
    assert "'decision'" in refusal(decision)
    assert "cannot be decoded" in refusal(DOGS.replace('"1.0"', '"1.0" encoding="utf-7"').encode())


def test_every_truncated_document_is_refused() -> None:
    end = DOGS.rindex(">")
    for length in range(0, end, 3):
        refusal(DOGS[:length])


def test_mutated_documents_give_a_network_or_one_of_our_errors() -> None:
    rng = np.random.default_rng(12)
    tags = ["<!--", "-->", "<TABLE>", "</TABLE>", "<![CDATA[", "]]>"]
    pieces = [*"<>&;\x00é", "&lt;", *tags, "0.5", ""]
    refused = 0
    for _ in range(500):
        text = DOGS
        for _ in range(rng.integers(1, 4)):
            start, cut = rng.integers(0, len(text)), int(rng.choice([0, 1, 5, 40]))
            text = text[:start] + str(rng.choice(pieces)) + text[start + cut :]
        try:
            assert all(np.allclose(table.sum(-1), 1, atol=1e-9) for table in read_xmlbif(text.encode()).tables)
        except SoftcountError:
            refused += 1
    assert refused > 200


def test_deep_and_long_documents_are_refused_quietly() -> None:
    refusal("<BIF>" + "<A>" * 100_000)
    refusal("<BIF><VARIABLE><NAME>" + "x" * 1_000_000)
