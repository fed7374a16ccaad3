"""A number that was measured on a device, kept between processes beside the compiled programs."""

import hashlib
import struct
from collections.abc import Callable
from typing import Any

from nngp.gram.device.program_store import ProgramStore
from nngp.gram.device.programs import device_digest, programs_folder

NUMBER = struct.Struct("<d")


def kept_number(name: str, device: Any, measure: Callable[[], float]) -> float:
    """What `measure` gave on such a device with these versions of JAX, now or earlier."""
    folder = programs_folder(device)
    if folder is None:
        return measure()
    store = ProgramStore(folder)
    key = hashlib.sha256(f"{name} {device_digest(device)}".encode()).hexdigest()
    body = store.read(key)
    if body is not None and len(body) == NUMBER.size:
        (found,) = NUMBER.unpack(body)
        return float(found)
    value = measure()
    store.write(key, NUMBER.pack(value))
    return value
