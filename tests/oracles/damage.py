"""Damage to files: flipped bits, random mutations, and archives rewritten with other contents."""

import io
import json
import struct
import tracemalloc
import zipfile
from collections import Counter

import numpy as np
from numpy.lib import format as npy


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
    """Bits of all but the values of arrays, by kind: zip's own headers, the headers of .npy
    members, and members that are no arrays."""
    kinds = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        infos, directory = archive.infolist(), archive.start_dir
        members = {info.filename: archive.read(info) for info in infos}
    for info in infos:
        name, extra = struct.unpack_from("<2H", data, info.header_offset + 26)
        start = info.header_offset + 30 + name + extra
        is_array = info.filename.endswith(".npy")
        content = members[info.filename]
        length = content.index(b"\n") + 1 if is_array else len(content)
        kinds.setdefault("zip structures", []).append((info.header_offset, start))
        kind = "array headers" if is_array else "JSON header"
        kinds.setdefault(kind, []).append((start, start + length))
    kinds["zip structures"].append((directory, len(data)))
    return {
        kind: [bit for a, b in ranges for bit in range(8 * a, 8 * b)]
        for kind, ranges in kinds.items()
    }


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


def members_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(members):
    """The members as an archive again, with right checksums, as its owner would write it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def npy_bytes(array):
    file = io.BytesIO()
    npy.write_array(file, array, allow_pickle=False)
    return file.getvalue()


def forged(data, change_header=None, **arrays):
    """A model file with other values in its header and other arrays, every checksum right."""
    members = members_of(data)
    for name, array in arrays.items():
        members[f"{name}.npy"] = array if isinstance(array, bytes) else npy_bytes(array)
    header = json.loads(members["header.json"])
    names = [name for name in members if name != "header.json"]
    header["checksums"] = {n.removesuffix(".npy"): zipfile.crc32(members[n]) for n in names}
    if change_header is not None:
        change_header(header)
    members["header.json"] = json.dumps(header).encode()
    return archive_of(members)


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
        values = values[key]
    values[path[-1]] = value


def finite(array):
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())
