"""Damage to files: flipped bits, random mutations, and safetensors files with other contents.

Files are taken apart and put together here without the library and without `safetensors`."""

import hashlib
import json
import tracemalloc
from collections import Counter

import numpy as np

TYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "U8": "u1", "BOOL": "?"}
BLANK = "0" * 64


def outcome(read, error, same):
    """What a reader makes of a damaged file: "refused" with a sentence of its own error, "same" if
    nothing differs, or a description of what must not happen."""
    try:
        found = read()
    except error as refused:
        message = str(refused)
        return "refused" if message and "\n" not in message else f"no sentence: {message!r}"
    except BaseException as other:
        return f"{type(other).__name__}: {other}"
    return "same" if same(found) else "silently different"


def peak(use):
    """Bytes that Python and NumPy allocated at most."""
    tracemalloc.start()
    try:
        use()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def flip(data, bit):
    out = bytearray(data)
    out[bit // 8] ^= 1 << bit % 8
    return bytes(out)


def bits_of_structure(data):
    """Bits of all but the values of arrays, by kind."""
    end = 8 + int.from_bytes(data[:8], "little")
    return {"length": list(range(64)), "header": list(range(64, 8 * end))}


def mutated(data, rng):
    """A random mutation of some bytes, and its kind."""
    kinds = (_bit, _byte, _bits, _cut, _insert, _swap, _zeros, _repeat)
    change = kinds[rng.integers(len(kinds))]
    out = bytearray(data)
    change(out, rng)
    return change.__name__.strip("_"), bytes(out)


def _bit(out, rng):
    out[rng.integers(len(out))] ^= 1 << rng.integers(8)


def _byte(out, rng):
    out[rng.integers(len(out))] ^= int(rng.integers(1, 256))


def _bits(out, rng):
    for _ in range(rng.integers(2, 20)):
        _bit(out, rng)


def _cut(out, rng):
    del out[rng.integers(len(out)) :]


def _insert(out, rng):
    place = rng.integers(len(out))
    out[place:place] = rng.bytes(rng.integers(1, 100))


def _swap(out, rng):
    size = int(rng.integers(1, min(5000, len(out) // 2)))
    a, b = rng.integers(0, len(out) - size, 2)
    first, second = bytes(out[a : a + size]), bytes(out[b : b + size])
    out[a : a + size], out[b : b + size] = second, first


def _zeros(out, rng):
    size, place = int(rng.integers(1, 5000)), rng.integers(len(out))
    out[place : place + size] = bytes(len(out[place : place + size]))


def _repeat(out, rng):
    size, place = int(rng.integers(1, 5000)), rng.integers(len(out))
    out[place:place] = out[place : place + size]


def parts_of(data):
    """The texts of a file, and its arrays."""
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    facts = header.pop("__metadata__")
    arrays = {}
    for name, one in header.items():
        start, stop = one["data_offsets"]
        raw = data[end + start : end + stop]
        arrays[name] = np.frombuffer(raw, TYPES[one["dtype"]]).reshape(one["shape"]).copy()
    return {name: text for name, text in facts.items() if not name.startswith("digest")}, arrays


def file_of(facts, arrays, change_header=None, change_text=None, indent=None):
    """The file with these texts and arrays, every digest right. `change_header` alters the header
    as a dictionary, `change_text` its text, both before the digest is taken."""
    header, data = {"__metadata__": {}}, b""
    for name, array in arrays.items():
        code = next(code for code, kind in TYPES.items() if np.dtype(kind) == array.dtype)
        raw = np.ascontiguousarray(array).tobytes()
        place = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": code, "shape": list(array.shape), "data_offsets": place}
        data += raw
    sums = {
        name: hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
        for name, array in arrays.items()
    }
    header["__metadata__"] = {**facts, "digests": json.dumps(sums), "digest": BLANK}
    if change_header is not None:
        change_header(header)
    text = json.dumps(header, separators=(",", ":"), indent=indent)
    text = text if change_text is None else change_text(text)
    text = text.encode()
    text += b" " * (-len(text) % 8)
    whole = hashlib.sha256(text).hexdigest()
    text = text.replace(f'"digest":"{BLANK}"'.encode(), f'"digest":"{whole}"'.encode())
    return len(text).to_bytes(8, "little") + text + data


def description_of(data):
    """The model in the file, as plain values."""
    return json.loads(parts_of(data)[0]["description"])


def forged(data, change=None, **arrays):
    """A model file with other plain values and other arrays, every digest right."""
    facts, own = parts_of(data)
    description = json.loads(facts["description"])
    if change is not None:
        change(description)
    facts["description"] = json.dumps(description)
    return file_of(facts, own | arrays)


def table(title, counts):
    """Lines of a table: what was done to a file, how often, and what came of it."""
    columns = sorted({outcome for found in counts.values() for outcome in found})
    lines = [title, f"{'':24s}{'cases':>9s}" + "".join(f"{c[:40]:>12s}" for c in columns)]
    for kind, found in counts.items():
        cells = "".join(f"{found[column]:12d}" for column in columns)
        lines.append(f"{kind:24s}{sum(found.values()):9d}{cells}")
    return "\n".join(lines)


def count(cases, judge):
    """How often each outcome came of the cases."""
    return Counter(judge(case) for case in cases)


def leaves(values, path=()):
    """The places of all values in nested mappings and lists, containers included."""
    parts = values.items() if isinstance(values, dict) else enumerate(values)
    for key, value in parts:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from leaves(value, (*path, key))


def put(values, path, value):
    """Set a value in nested mappings and lists."""
    for key in path[:-1]:
        values = values[int(key) if isinstance(values, list) else key]
    last = path[-1]
    values[int(last) if isinstance(values, list) else last] = value


def finite(array):
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
