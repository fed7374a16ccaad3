"""Data sets of some dozen images in every form in which people have the large ones, written here
without the package; and a web server that can be told to misbehave."""

import gzip
import hashlib
import io
import socket
import struct
import tarfile
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

IDX = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
       "t10k-labels-idx1-ubyte")  # fmt: skip
BATCHES = ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5",
           "test_batch")  # fmt: skip


def grey(seed, train=60, test=20):
    """Images and labels, to train on and to test on."""
    rng = np.random.default_rng(seed)
    images = [rng.integers(0, 256, (n, 28, 28), dtype=np.uint8) for n in (train, test)]
    labels = [((np.arange(n) * 7 + seed) % 10).astype(np.uint8) for n in (train, test)]
    return images[0], labels[0], images[1], labels[1]


def idx_bytes(values):
    return (
        struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape) + values.tobytes()
    )


def idx_files(parts):
    """Names and bytes, gzipped and not."""
    raw = {name: idx_bytes(part) for name, part in zip(IDX, parts, strict=True)}
    return raw, {f"{name}.gz": gzip.compress(data, mtime=0) for name, data in raw.items()}


def npz_bytes(**arrays):
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def coloured(seed=5, batch=10):
    """Six batches of images (n, 32, 32, 3) and labels."""
    rng = np.random.default_rng(seed)
    images = [rng.integers(0, 256, (batch, 32, 32, 3), dtype=np.uint8) for _ in BATCHES]
    return [(x, rng.permutation(10)[:batch].astype(np.uint8)) for x in images]


def records(images, labels):
    out = b""
    for image, label in zip(images, labels, strict=True):
        out += bytes([label]) + b"".join(image[:, :, c].tobytes() for c in range(3))
    return out


def packed(images, labels):
    red, green, blue = (images[..., c].astype(int) for c in range(3))
    planes = np.stack([green, red - green, blue - green])
    planes = np.diff(np.diff(planes, axis=2, prepend=0), axis=3, prepend=0)
    return npz_bytes(d=(planes % 256).astype(np.uint8), y=labels)


def _text(value):
    return b"U" + bytes([len(value)]) + value.encode()


def pickled(images, labels, kind="u1", extra=b""):
    """A batch as Python 2 pickled it: protocol 2, byte strings, an array by its old module."""
    rows = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    shape = (
        b"J" + struct.pack("<i", rows.shape[0]) + b"J" + struct.pack("<i", rows.shape[1]) + b"\x86"
    )
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + _text("b") + b"\x87R"
        b"(K\x01" + shape + b"cnumpy\ndtype\n" + _text(kind) + b"K\x00K\x01\x87R"
        b"(K\x03" + _text("|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        b"T" + struct.pack("<i", rows.size) + rows.tobytes() + b"tb"
    )  # fmt: skip
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    filenames = b"](" + _text("a.png") + b"e"
    return (
        b"\x80\x02}(" + _text("batch_label") + _text("training batch 1 of 5") + _text("labels")
        + numbers + _text("data") + array + _text("filenames") + filenames + extra + b"u."
    )  # fmt: skip


def tar_bytes(files):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return file.getvalue()


def md5(data):
    return hashlib.md5(data).hexdigest()


def write(folder, files):
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


class Handler(BaseHTTPRequestHandler):
    """Serves `server.files`; `server.faults` maps names to lists of faults, one for each request:
    a status code, "silence" for no answer, or (bytes, ) after which the connection breaks; it is
    torn down with "reset" as well, and closed politely otherwise."""

    def do_GET(self):
        name = self.path.rpartition("/")[2]
        start = int((self.headers.get("Range") or "bytes=0-")[6:-1])
        start = 0 if self.server.whole_only else start
        self.server.requests.append((name, start))
        time.sleep(self.server.delay)
        fault = self.server.faults.get(name, [])
        fault = fault.pop(0) if fault else None
        if fault == "silence":
            self.close_connection = True
            return None
        if isinstance(fault, int) or name not in self.server.files:
            return self.send_error(fault or 404)
        data = self.server.files[name][start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: fault[0]] if fault else data)
        if fault and "reset" in fault:
            linger_not = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not)
            self.connection.close()
        return None

    def log_message(self, *words):
        """Quiet."""


@contextmanager
def serve(files):
    """A server of these files on this machine; its address is `server.url`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.faults, server.requests, server.whole_only = files, {}, [], False
    server.delay = 0.0
    server.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
