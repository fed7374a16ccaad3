"""Records through JSON and back, changed on the way."""

import json

import numpy as np

from nngp._records import from_plain, to_plain
from nngp._tensors import StoredArray


def read_again(record, changes=None, **arrays):
    """A record as it is read from a file, with other values of some fields and other arrays, by
    their names."""
    plain, own = to_plain(record)
    plain = json.loads(json.dumps(plain)) | (changes or {})
    stored = {name: _stored(array) for name, array in (own | arrays).items()}
    return from_plain(type(record), plain, stored)


def _stored(array):
    if isinstance(array, StoredArray):
        return array
    array = np.asarray(array)
    return StoredArray(array.shape, array.dtype, lambda: array)
