"""Reader of zip archives whose members are stored as they are, one after the other.

The archives that this package writes are of that kind, so anything else in one is damage: a gap, an
overlap, a compressed or encrypted member, a name that is there twice, a comment, a size that the
file does not have. Both headers of a member must agree. A member is read to its end, and its
checksum is compared; an array's type, order and shape are compared before anything is allocated.
What is wrong with an archive is a ValueError, and nothing else is.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nngp import _npy

LOCAL, CENTRAL = struct.Struct("<4s5H3I2H"), struct.Struct("<4s6H3I5H2I")
END, LARGE_END, LOCATOR = struct.Struct("<4s4H2IH"), struct.Struct("<4sQ2H2I4Q"), "<4sIQI"
IN_EXTRA = 0xFFFFFFFF  # a size that 32 bits do not hold is in the extra field
LONGEST_NAME = 1000  # bytes
CHUNK = 1 << 20  # bytes that are read and added to the checksum at a time


@dataclass(frozen=True)
class Member:
    """A stored file: where its bytes are, and their checksum."""

    name: str
    start: int
    size: int
    crc: int


class StoredArchive:
    """An archive that is open for reading."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self.size = file, file.seek(0, os.SEEK_END)
        listed, directory = self._read_directory()
        self.members: dict[str, Member] = {}
        end = 0
        for offset, member in listed:
            if offset != end:
                raise ValueError("its members overlap, or have gaps between them")
            if member.name in self.members:
                raise ValueError(f"it has the member {member.name!r} twice")
            placed = self._placed(offset, member)
            self.members[member.name], end = placed, placed.start + placed.size
        if end != directory:
            raise ValueError("its directory does not follow its last member")

    def read(self, name: str, most: int) -> bytes:
        """Read a member of at most so many bytes."""
        member = self._member(name)
        if member.size > most:
            raise ValueError(f"{name} has {member.size} bytes, expected {most} at most")
        data = self._exactly(member.start, member.size)
        _check_crc(member, zlib.crc32(data))
        return data

    def read_array(
        self, name: str, shape: tuple[int, ...] | None = None, dtype: str | None = None
    ) -> NDArray[Any]:
        """Read a .npy member, row by row in memory, which must have the shape and type given."""
        member = self._member(name)
        start = self._exactly(member.start, min(member.size, _npy.LONGEST_HEADER + 12))
        header = _npy.read_header(BytesIO(start))
        if shape is not None and header.shape != shape:
            raise ValueError(f"{name} has the shape {header.shape}, expected {shape}")
        if dtype is not None and header.dtype != np.dtype(dtype):
            raise ValueError(f"{name} holds {header.dtype}, expected {np.dtype(dtype)}")
        if header.order != "C":
            raise ValueError(f"{name} is stored column by column, expected row by row")
        if member.size - header.offset != header.n_bytes:
            raise ValueError(f"{name} has {member.size} bytes, which its array does not fill")
        array: NDArray[Any] = np.empty(header.shape, header.dtype)
        crc = zlib.crc32(start[: header.offset])
        _check_crc(member, self._fill(array, member.start + header.offset, crc))
        return array

    def _fill(self, array: NDArray[Any], place: int, crc: int) -> int:
        """Read the values of an array; returns the checksum continued over them."""
        if not array.size:
            return crc
        target = memoryview(array.reshape(-1).view(np.uint8))  # type: ignore[arg-type]
        self._file.seek(place)
        done = 0
        while done < len(target):
            block = target[done : done + CHUNK]
            count = self._file.readinto(block)  # type: ignore[attr-defined]
            if not count:
                raise ValueError("it became shorter while it was read")
            crc, done = zlib.crc32(block[:count], crc), done + count
        return crc

    def _member(self, name: str) -> Member:
        if name not in self.members:
            raise ValueError(f"it has no member {name!r}")
        return self.members[name]

    def _read_directory(self) -> tuple[list[tuple[int, Member]], int]:
        """The members with the places of their local headers, and where the directory begins."""
        begin, size, count = self._find_directory()
        data, place, out = self._exactly(begin, size), 0, []
        while place < size:
            if size - place < CENTRAL.size:
                raise ValueError("its directory is cut short")
            fields = CENTRAL.unpack_from(data, place)
            name, extra, comment = fields[10:13]
            stop = place + CENTRAL.size + name + extra + comment
            if fields[0] != b"PK\1\2" or stop > size or comment or fields[13]:
                raise ValueError("its directory is damaged")
            rest = data[place + CENTRAL.size : stop]
            packed, unpacked, offset = _sizes([fields[8], fields[9], fields[16]], rest[name:])
            _check_plain(fields[3], fields[4], packed, unpacked)
            out.append((offset, Member(_name(rest[:name]), 0, unpacked, fields[7])))
            place = stop
        if len(out) != count:
            raise ValueError(f"its directory has {len(out)} members, and its end says {count}")
        return out, begin

    def _find_directory(self) -> tuple[int, int, int]:
        """Begin and size of the directory, and the number of members, from the end of the file."""
        last = self.size - END.size
        if last < 0:
            raise ValueError("it is cut short")
        fields = END.unpack(self._exactly(last, END.size))
        if fields[0] != b"PK\5\6" or fields[7]:
            raise ValueError("it is cut short, or has bytes after its end")
        *disks, there, count, size, begin = fields[1:7]
        if self._has_large_end(last):
            last, disks, there, count, size, begin = self._large_end(last)
        if any(disks) or there != count or begin + size != last:
            raise ValueError("its end does not say where its directory is")
        return begin, size, count

    def _has_large_end(self, last: int) -> bool:
        place = last - struct.calcsize(LOCATOR)
        return place >= 0 and self._exactly(place, 4) == b"PK\6\7"

    def _large_end(self, last: int) -> tuple[int, list[int], int, int, int, int]:
        """The fields of the end of an archive that is too large for those of 32 bits."""
        locator, place = struct.calcsize(LOCATOR), last - struct.calcsize(LOCATOR) - LARGE_END.size
        if place < 0:
            raise ValueError("it is cut short")
        data = self._exactly(place, LARGE_END.size + locator)
        fields = LARGE_END.unpack_from(data)
        sign, disk, found, disks = struct.unpack_from(LOCATOR, data, LARGE_END.size)
        whole = (fields[0], fields[1]) == (b"PK\6\6", LARGE_END.size - 12)
        if not whole or (sign, disk, found, disks) != (b"PK\6\7", 0, place, 1):
            raise ValueError("its end does not say where its directory is")
        _, _, _, _, on, of, there, count, size, begin = fields
        return place, [on, of], there, count, size, begin

    def _placed(self, offset: int, member: Member) -> Member:
        """The member with the place of its bytes, after its local header, which must agree."""
        fields = LOCAL.unpack(self._exactly(offset, LOCAL.size))
        name, extra = fields[9:11]
        if fields[0] != b"PK\3\4" or name > LONGEST_NAME:
            raise ValueError(f"{member.name} is not where the directory says")
        rest = self._exactly(offset + LOCAL.size, name + extra)
        packed, unpacked = _sizes([fields[7], fields[8]], rest[name:])
        _check_plain(fields[2], fields[3], packed, unpacked)
        if (_name(rest[:name]), unpacked, fields[6]) != (member.name, member.size, member.crc):
            raise ValueError(f"{member.name} and the directory contradict each other")
        start = offset + LOCAL.size + name + extra
        if start + member.size > self.size:
            raise ValueError(f"{member.name} is longer than the file")
        return Member(member.name, start, member.size, member.crc)

    def _exactly(self, place: int, count: int) -> bytes:
        if place < 0 or place + count > self.size:
            raise ValueError("it is cut short")
        self._file.seek(place)
        data = self._file.read(count)
        if len(data) < count:
            raise ValueError("it became shorter while it was read")
        return data


@contextmanager
def open_stored(path: str | os.PathLike[str]) -> Iterator[StoredArchive]:
    """Open an archive. Raises ValueError if it is damaged or of another kind."""
    with open(path, "rb") as file:
        yield StoredArchive(file)


def _sizes(stated: list[int], extra: bytes) -> list[int]:
    """Sizes (of packed bytes, of bytes) and place; those that 32 bits do not hold are in the extra
    field, the size of packed bytes second."""
    large = [i for i in (1, 0, 2) if i < len(stated) and stated[i] == IN_EXTRA]
    head = struct.pack("<2H", 1, 8 * len(large)) if large else b""
    if len(extra) != len(head) + 8 * len(large) or not extra.startswith(head):
        raise ValueError("it has a field that is not known")
    out = list(stated)
    for i, value in zip(
        large, struct.unpack_from(f"<{len(large)}Q", extra, len(head)), strict=True
    ):
        out[i] = value
    return out


def _check_plain(flags: int, method: int, packed: int, unpacked: int) -> None:
    if flags or method or packed != unpacked:
        raise ValueError("it has a member that is compressed, encrypted or not stored plainly")


def _name(raw: bytes) -> str:
    name = raw.decode("ascii", "replace")
    if not name.isascii() or not name.isprintable():
        raise ValueError("it has a member whose name is damaged")
    return name


def _check_crc(member: Member, found: int) -> None:
    if found != member.crc:
        raise ValueError(f"the checksum of {member.name} is wrong")
