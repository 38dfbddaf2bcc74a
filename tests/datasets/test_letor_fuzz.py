"""Every byte string either parses as a naive reference parser says, or raises LetorError where that parser stops."""

import io
import math
import re
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from boostlist.datasets import LetorError, _reader, load_letor

NUMBER = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
MAX_LINE, BLOCK = 120, 64


@dataclass
class FaultError(Exception):
    line: int
    column: int


def number(text, dtype, stop):
    if not re.fullmatch(NUMBER, text):
        raise stop
    with np.errstate(over="ignore"):
        value = dtype(float(text))
    if math.isinf(value):
        raise stop
    return value


def reference(data, dtype, n_features, base):
    """Parse line by line as the grammar reads; return [(label, qid, {column: value}, comment)] or raise FaultError."""
    if data.startswith((b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd")):  # compressed, and surely damaged
        raise FaultError(1, 1)
    *lines, rest = data.split(b"\n")
    documents, seen = [], []
    for n, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            raise FaultError(n, MAX_LINE + 1)
        fields, hashed, comment = line.partition(b"#")
        if not hashed and fields.endswith(b"\r"):
            fields = fields[:-1]
        tokens = [(match[0], FaultError(n, match.start() + 1)) for match in re.finditer(rb"[^ \t]+", fields)]
        if tokens:
            tokens.append((b"", FaultError(n, len(fields) + 1)))
            (text, stop), *tokens = tokens
            label = number(text, np.float64, stop)
            (text, stop), *tokens = tokens
            if not re.fullmatch(rb"qid:[0-9]{1,19}", text) or int(text[4:]) >= 2**63:
                raise stop
            qid, features = int(text[4:]), {}
            for text, stop in tokens[:-1] if tokens else []:
                index, colon, value = text.partition(b":")
                if not colon or not re.fullmatch(rb"[0-9]{1,19}", index):
                    raise stop
                j = int(index) - base
                if j < 0 or j <= max(features, default=-1) or int(index) >= 2**31 or (n_features and j >= n_features):
                    raise stop
                features[j] = dtype("nan") if value == b"NULL" else number(value, dtype, stop)
            if qid in seen and documents[-1][1] != qid:
                raise FaultError(n, fields.index(b"qid:") + 1)
            seen.append(qid)
            documents.append((label, qid, features, comment))
        if b"\0" in comment:
            raise FaultError(n, len(fields) + 2 + comment.index(b"\0"))
    if rest:
        raise FaultError(len(lines) + 1, min(len(rest), MAX_LINE) + 1)
    if not documents:
        raise FaultError(len(lines) + 1, 1)
    return documents


def check(data, dtype=np.float32, n_features=None, base=1, sparse="auto"):
    def load():
        return load_letor(
            io.BytesIO(data), dtype=dtype, n_features=n_features, zero_based=base == 0, sparse=sparse, comments=True
        )

    try:
        expected = reference(data, dtype, n_features, base)
    except FaultError as fault:
        expected = fault
    if isinstance(expected, FaultError):
        with pytest.raises(LetorError) as caught:
            load()
        assert (caught.value.line, caught.value.column) == (expected.line, expected.column), str(caught.value)
        return
    found = load()
    width = n_features or max(max(features, default=-1) for _, _, features, _ in expected) + 1
    assert found.X.shape == (len(expected), width)
    assert found.X.dtype == dtype
    assert found.qid.tolist() == [qid for _, qid, _, _ in expected]
    assert found.y.tobytes() == np.array([label for label, _, _, _ in expected]).tobytes()
    for i, (_, _, features, comment) in enumerate(expected):
        if found.is_sparse:
            row = found.X[i]
            assert row.indices.tolist() == list(features)
            values = row.data
        else:
            values = found.X[i, list(features)]
            assert np.count_nonzero(found.X[i]) == np.count_nonzero(list(features.values()))
        assert values.tobytes() == np.array(list(features.values()), dtype).tobytes()
        assert found.comments[i].encode("utf-8", "surrogateescape") == comment.strip()


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    """Make a text of a few lines cross the borders of batches."""
    monkeypatch.setattr(_reader, "MAX_LINE_BYTES", MAX_LINE)
    monkeypatch.setattr(_reader, "BLOCK_BYTES", BLOCK)
    monkeypatch.setattr(_reader, "KEEP_BYTES", 200)


fuzz = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

digits = st.text("0123456789", min_size=1, max_size=22)
numbers = st.one_of(
    st.builds("{}{}".format, st.sampled_from(["", "-", "+"]), digits),
    st.builds("{}{}.{}".format, st.sampled_from(["", "-"]), digits, digits),
    st.builds("{:.5}e{}".format, digits, st.integers(-60, 33)),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["0", "1", ".5", "2.", "NULL", "1e38", "3.4028235677973362e38", "1e-400"]),
)
odd = st.sampled_from(
    [
        *("nan", "inf", "-", ".", "1_0", "0x1", "1e", "1e+", "--1", "NUL", "NULLx", ":", "1:", ":1", "qid:", "#"),
        *("\0", "\r", "1e400", "1e39", "0:1", "1:1", "99999999999:1", "qid:1", "3:1e39"),
    ]
)


def rarely(draw):
    return draw(st.integers(0, 24)) == 12


@st.composite
def documents(draw):
    """Return a line that is mostly right."""
    indices = sorted(draw(st.sets(st.integers(1, 8), max_size=4)))
    if rarely(draw):
        indices = draw(st.permutations(indices))
    blank = st.sampled_from([" ", " ", " ", "\t", "  "])
    parts = [draw(numbers) if rarely(draw) else draw(st.sampled_from(["0", "1", "2.5", "-1", "1e3"]))]
    query = (
        st.sampled_from(["2", "9223372036854775807", "9223372036854775808", "x"]) if rarely(draw) else st.just("007")
    )
    parts += [f"qid:{draw(query)}"]
    parts += [f"{j}:{draw(numbers)}" for j in indices]
    if rarely(draw):
        parts.insert(draw(st.integers(0, len(parts))), draw(odd))
    line = "".join(part + draw(blank) for part in parts)
    if draw(st.booleans()):
        line = line.rstrip(" \t")
    line += draw(st.sampled_from(["", "", "# docid = 3", "#", "\r", "# a\r"]))
    return line.encode()


@st.composite
def texts(draw):
    other = st.sampled_from([b"", b" ", b"# only a comment", b"\r", b"x" * (MAX_LINE + 1)])
    lines = draw(st.lists(documents(), max_size=10))
    if draw(st.booleans()):
        lines.insert(draw(st.integers(0, len(lines))), draw(other))
    return b"\n".join(lines) + (b"" if rarely(draw) else b"\n")


@fuzz
@given(texts(), st.sampled_from([np.float32, np.float64]), st.sampled_from([None, None, 8]), st.sampled_from([1, 1, 0]))
@example(b"1 qid:1 5:1 3:2\n", np.float32, None, 1)  # the last index is not the highest
@example(b"1 qid:1 9:12345678901234567890 3:2\n", np.float32, None, 1)
@example(b"1 qid:1\n0 qid:2\n1 qid:1\n", np.float32, None, 1)
@example(b"1 qid:1\n0 qid:2\n1 qid:1 x\n", np.float32, None, 1)
@example(b"", np.float32, None, 1)
def test_lines_that_are_mostly_right(data, dtype, n_features, base):
    check(data, dtype, n_features, base)


@fuzz
@given(st.lists(documents(), min_size=1, max_size=4), st.data())
def test_right_lines_with_a_byte_changed(lines, data):
    text = bytearray(b"\n".join(lines) + b"\n")
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(text) - 1))
        text[at : at + data.draw(st.integers(0, 1))] = data.draw(
            st.sampled_from([b"", b"\0", b"\n", b"\r", b"#", b" ", b"7"])
        )
        if not text:
            break
    check(bytes(text))


@fuzz
@given(st.binary(max_size=200))
def test_arbitrary_bytes(data):
    check(data)


@fuzz
@given(st.lists(st.sampled_from(list(b"0123456789.:eE+-# \t\r\n\nqid")), max_size=120).map(bytes))
def test_arbitrary_text_over_the_grammars_letters(data):
    check(data)


@settings(fuzz, max_examples=200)
@given(texts())
def test_dense_and_sparse_alike(data):
    check(data, n_features=12, sparse=True)
    check(data, n_features=12, sparse=False)
