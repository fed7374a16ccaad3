"""A file that is not what it should be is named, with what is wrong, and not used."""

import gzip
import io
import os
import pickle
import tarfile
from pathlib import Path

import numpy as np
import pytest
import small_sets
from damage import peak
from small_sets import BATCHES, IDX

from nngp_paper import datasets

KEYS = ("x_train", "y_train", "x_test", "y_test")
ONE_SENTENCE = r"^[^\n]+; delete it, or put a whole copy in its place$"


def fault(name, folder):
    """The sentence about a file."""
    with pytest.raises(ValueError, match=ONE_SENTENCE) as caught:
        datasets.load(name, folder)
    return str(caught.value)


def as_npz(folder, parts, **changes):
    arrays = dict(zip(KEYS, parts, strict=True)) | changes
    (folder / "mnist.npz").write_bytes(small_sets.npz_bytes(**arrays))
    return folder


def test_the_folder_is_missing(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"the data folder \S*no does not exist; name"):
        datasets.load("mnist", tmp_path / "no")
    monkeypatch.setenv("NNGP_DATA", str(tmp_path / "no"))
    with pytest.raises(FileNotFoundError, match=r"no \(which NNGP_DATA names\) does not exist"):
        datasets.load("uci/boston")
    (tmp_path / "file").write_text("")
    with pytest.raises(FileNotFoundError, match="file is a file; name a folder"):
        datasets.split("mnist", data=tmp_path / "file")


def test_the_folder_may_not_be_read(folder, monkeypatch):
    monkeypatch.setattr("os.access", lambda *arguments: False)  # to root everything is allowed
    with pytest.raises(PermissionError, match=r"the data folder .* may not be read"):
        datasets.load("mnist", folder)


@pytest.mark.parametrize("kind", ["folder", "broken link", "loop"])
def test_something_that_is_no_file_is_named(folder, kind):
    path = folder / "mnist.npz"
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path if kind == "loop" else folder / "nowhere")
    with pytest.raises(FileNotFoundError, match=r"mnist\.npz is no file"):
        datasets.load("mnist", folder, download=False)


def test_one_of_the_files_is_missing(grey, coloured, folder):
    raw = grey["mnist"][1]
    small_sets.write(folder / "MNIST" / "raw", {n: raw[n] for n in IDX[:3]})
    with pytest.raises(FileNotFoundError, match=f"has MNIST/raw/{IDX[0]} but not .*{IDX[3]}, whi"):
        datasets.load("mnist", folder)
    small_sets.write(folder, {f"cifar10/{BATCHES[0]}.npz": small_sets.packed(*coloured[0])})
    with pytest.raises(FileNotFoundError, match=r"not cifar10/data_batch_2.npz, which cifar10 nee"):
        datasets.split("cifar10", data=folder)


def test_no_file_is_there(folder, cache):
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("cifar10", folder, download=False)
    assert str(caught.value) == (
        f"cifar10 was not found in {folder} or {cache / 'cifar10'}, and was not to be downloaded; "
        "put cifar-10-binary.tar.gz (or cifar10 in another of its usual forms) into a folder, and "
        "name that folder with data= (on the command line --data) or NNGP_DATA"
    )
    assert not cache.exists()


def test_a_truncated_npz(grey, folder):
    whole = (as_npz(folder, grey["mnist"][0]) / "mnist.npz").read_bytes()
    for length in (0, 1, 1000, len(whole) // 2, len(whole) - 1):
        (folder / "mnist.npz").write_bytes(whole[:length])
        assert f"{folder / 'mnist.npz'} cannot be used: it is cut short" in fault("mnist", folder)


def test_a_damaged_npz(grey, folder):
    """Zip's CRC notices a changed byte, wherever it is; or it changes nothing that is read."""
    parts = grey["mnist"][0]
    whole = (as_npz(folder, parts) / "mnist.npz").read_bytes()
    noticed = 0
    for place in np.random.default_rng(0).integers(0, len(whole), 60):
        changed = bytearray(whole)
        changed[place] ^= 0x55
        (folder / "mnist.npz").write_bytes(changed)
        try:
            images = datasets.load("mnist", folder)
        except ValueError as error:
            noticed += "mnist.npz cannot be used: it" in str(error)
        else:
            assert np.array_equal(images.train_images, parts[0])
            assert np.array_equal(images.test_labels, parts[3])
            noticed += 1
    assert noticed == 60


def test_an_npz_that_is_something_else(folder, grey):
    np.save(folder / "mnist.npy", np.zeros(3))
    (folder / "mnist.npy").rename(folder / "mnist.npz")
    assert "it is cut short, or no .npz archive" in fault("mnist", folder)
    (folder / "mnist.npz").write_bytes(pickle.dumps({"x_train": 1}))
    assert "it is cut short, or no .npz archive" in fault("mnist", folder)
    as_npz(folder, grey["mnist"][0], x_train=np.array([{}], dtype=object))
    assert "mnist.npz cannot be used: Object arrays cannot be loaded" in fault("mnist", folder)


@pytest.mark.parametrize(
    ("key", "change", "words"),
    [
        ("x_train", lambda x: x[:59], r"its images are uint8 \(59, 28, 28\), expected uint8 \(60"),
        ("x_train", lambda x: x.reshape(60, -1), r"images are uint8 \(60, 784\), expected"),
        ("x_test", lambda x: x / 255, r"its images are float64 \(20, 28, 28\), expected uint8"),
        ("y_train", lambda y: y[:59], "it has 59 labels for 60 images"),
        ("y_test", lambda y: y + 1, "it has a label 10, but labels go from 0 to 9"),
        ("y_test", lambda y: y.astype(int) - 1, "it has a label -1, but labels go from 0 to 9"),
        (
            "y_train",
            lambda y: y.astype(float),
            r"labels are float64 \(60,\), expected integers \(60,",
        ),
        ("y_train", lambda y: np.eye(10, dtype=int)[y], r"labels are int64 \(60, 10\), expected"),
    ],
)
def test_arrays_that_are_not_as_they_should_be(grey, folder, key, change, words):
    parts = dict(zip(KEYS, grey["mnist"][0], strict=True))
    as_npz(folder, parts.values(), **{key: change(parts[key])})
    with pytest.raises(ValueError, match=words):
        datasets.load("mnist", folder)
    assert str(folder / "mnist.npz") in fault("mnist", folder)


def test_an_array_is_missing(grey, folder):
    names = dict(zip(("x_train", "labels", "x_test", "y_test"), grey["mnist"][0], strict=True))
    (folder / "mnist.npz").write_bytes(small_sets.npz_bytes(**names))
    assert "it has no array 'y_train' (it has x_train, labels," in fault("mnist", folder)


def test_a_truncated_gz(grey, folder):
    zipped = grey["mnist"][2]
    name = f"{IDX[2]}.gz"
    small_sets.write(folder, zipped | {name: zipped[name][:-100]})
    message = fault("mnist", folder)
    assert f"{folder / name} cannot be used: it is cut short or damaged" in message


@pytest.mark.parametrize("zipped", [False, True])
def test_the_checksum_of_an_original_file(grey, folder, zipped):
    files = grey["mnist"][2 if zipped else 1]
    name = IDX[0] + zipped * ".gz"
    data = bytearray(grey["mnist"][1][IDX[0]])
    data[1000] ^= 1
    small_sets.write(folder, files | {name: gzip.compress(data) if zipped else bytes(data)})
    message = fault("mnist", folder)
    assert f"{folder / name} cannot be used: it is not the published file (MD5 " in message


def test_a_damaged_file_is_not_passed_over(grey, folder, cache):
    """Although the cache has a good copy."""
    raw = grey["mnist"][1]
    small_sets.write(cache / "mnist", raw)
    small_sets.write(folder, raw | {IDX[1]: raw[IDX[1]][:-1] + b"\x09"})
    assert "not the published file" in fault("mnist", folder)


def test_an_idx_file_that_contradicts_itself(grey, adopt, folder):
    raw = dict(grey["mnist"][1])
    for data, words in (
        (raw[IDX[1]] + b"\0", r"it holds 61 bytes, but its header says shape \(60,\)"),
        (raw[IDX[0]], "it is no idx file of bytes in 1 dimension"),
        (raw[IDX[1]][:5], "it is no idx file"),
        (b"\0\0\x0d\x01" + raw[IDX[1]][4:], "it is no idx file"),
    ):
        files = raw | {IDX[1]: data}
        adopt("mnist", files)
        small_sets.write(folder, files)
        with pytest.raises(ValueError, match=words):
            datasets.load("mnist", folder)


def test_a_file_may_not_be_read(grey, folder, monkeypatch):
    as_npz(folder, grey["mnist"][0])

    def refuse(*words, **more):
        raise PermissionError(13, "Permission denied")

    small_sets.write(folder / "FashionMNIST" / "raw", grey["fashion_mnist"][1])
    monkeypatch.setattr(Path, "open", refuse)  # to root everything is allowed
    with pytest.raises(PermissionError, match=r"mnist.npz may not be read \(permission denied\); "):
        datasets.load("mnist", folder)
    with pytest.raises(PermissionError, match=r"ubyte may not be read \(permission denied\); "):
        datasets.load("fashion_mnist", folder)


def batches(coloured, write, end=""):
    return {f"{n}{end}": write(*batch) for n, batch in zip(BATCHES, coloured, strict=True)}


def test_records_and_planes(coloured, adopt, folder):
    files = batches(coloured, small_sets.records, ".bin")
    files["data_batch_3.bin"] += b"\0"
    adopt("cifar10", files)
    small_sets.write(folder, files)
    assert "data_batch_3.bin cannot be used: its 30731 bytes are no" in fault("cifar10", folder)
    files = batches(coloured, small_sets.packed, ".npz")
    files["test_batch.npz"] = small_sets.npz_bytes(d=np.zeros((10, 3, 32, 32)), y=np.zeros(10, int))
    small_sets.write(folder, files)
    assert "test_batch.npz cannot be used: its planes are float64" in fault("cifar10", folder)
    images, labels = coloured[0]
    files = batches(coloured, small_sets.packed, ".npz")
    files["data_batch_1.npz"] = small_sets.packed(images[:9], labels[:9])
    small_sets.write(folder, files)
    assert "data_batch_1.npz cannot be used: its images are" in fault("cifar10", folder)


def test_archives(coloured, adopt, folder):
    name = "cifar-10-binary.tar.gz"
    files = batches(coloured, small_sets.records, ".bin")
    whole = small_sets.tar_bytes({f"cifar-10-batches-bin/{n}": d for n, d in files.items()})
    small_sets.write(folder, {name: whole[: len(whole) // 2]})
    assert f"{name} cannot be used: it is cut short or damaged" in fault("cifar10", folder)
    small_sets.write(folder, {name: whole})
    assert f"{name} cannot be used: it is not the published" in fault("cifar10", folder)
    adopt("cifar10", {name: small_sets.tar_bytes({"cifar-10-batches-bin/a": b""})})
    small_sets.write(folder, {name: small_sets.tar_bytes({"cifar-10-batches-bin/a": b""})})
    assert "it has no member cifar-10-batches-bin/data_batch_1.bin" in fault("cifar10", folder)
    files["data_batch_2.bin"] = files["data_batch_2.bin"][:-1] + b""
    tar = small_sets.tar_bytes({f"cifar-10-batches-bin/{n}": d for n, d in files.items()})
    adopt("cifar10", {name: tar})
    small_sets.write(folder, {name: tar})
    assert f"{name}/cifar-10-batches-bin/data_batch_2.bin cannot" in fault("cifar10", folder)


class Evil:
    """An object whose pickle calls a function when it is loaded."""

    def __reduce__(self):
        return (os.mkdir, ("ran",))


def with_extra(coloured, value):
    """A batch with one more entry, pickled as the real ones are."""
    entry = pickle.dumps(value, protocol=2)[2:-1]
    return small_sets.pickled(*coloured[0], extra=b"U\x05extra" + entry)


def tampered(coloured, adopt, folder, first):
    files = batches(coloured, small_sets.pickled) | {BATCHES[0]: first}
    adopt("cifar10", files)
    small_sets.write(folder / "cifar-10-batches-py", files)
    return fault("cifar10", folder)


def test_a_pickle_that_would_run_code(coloured, adopt, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    message = tampered(coloured, adopt, folder, with_extra(coloured, Evil()))
    assert "data_batch_1 cannot be used: its pickle asks for posix.mkdir, which" in message
    assert not (tmp_path / "ran").exists()
    pickle.loads(pickle.dumps(Evil()))  # it would indeed have run
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (pickle.dumps([1, 2]), "its pickle holds no dictionary with an array 'data'"),
        (pickle.dumps({"data": "text", "labels": []}), "no dictionary with an array 'data'"),
        (b"\x80\x02nonsense", "it is damaged"),
        (b"", "it is cut short or damaged"),
    ],
    ids=["list", "text", "nonsense", "empty"],
)
def test_pickles_of_something_else(coloured, adopt, folder, first, words):
    assert words in tampered(coloured, adopt, folder, first)


def test_pickled_arrays_of_something_else(coloured, adopt, folder):
    images, labels = coloured[0]
    message = tampered(coloured, adopt, folder, small_sets.pickled(images, labels, kind="O8"))
    assert "its pickle holds an array of 'O8', expected 'u1' (bytes)" in message
    message = tampered(coloured, adopt, folder, small_sets.pickled(images[:, :16], labels))
    assert "its data have shape (10, 1536), expected rows of 3072 pixels" in message
    short = small_sets.pickled(images, labels).replace(b"J\x0a\0\0\0", b"J\x0b\0\0\0", 1)
    assert "no row-by-row uint8 (11, 3072)" in tampered(coloured, adopt, folder, short)
    kind = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R"
    whole = small_sets.pickled(images, labels)
    assert kind in whole
    untyped = whole.replace(kind, b"}").replace(
        b"J\xff\xff\xff\xffK\x00tb", b"J\xff\xff\xff\xffK\x00t0"
    )
    assert "no row-by-row uint8 (10, 3072)" in tampered(coloured, adopt, folder, untyped)
    by_columns = whole.replace(b"K\x00tb\x89", b"K\x00tb\x88")
    assert "no row-by-row uint8 (10, 3072)" in tampered(coloured, adopt, folder, by_columns)
    unlabelled = small_sets.pickled(images, labels).replace(b"U\x06labels", b"U\x06labelz")
    assert "its pickle has no 'labels'" in tampered(coloured, adopt, folder, unlabelled)
    message = tampered(coloured, adopt, folder, small_sets.pickled(images, labels[:9]))
    assert "it has 9 labels for 10 images" in message


BOMB = 50_000_000  # bytes of zeros, which gzip makes a thousandth of
SMALL = 8_000_000


def test_a_gz_that_is_larger_than_the_set_is_not_unpacked(grey, adopt, folder):
    name = f"{IDX[0]}.gz"
    files = grey["mnist"][2] | {name: gzip.compress(bytes(BOMB))}
    adopt("mnist", files)
    small_sets.write(folder, files)
    used = peak(lambda: fault("mnist", folder))
    assert "it holds more than the" in fault("mnist", folder)
    assert used < SMALL


def test_an_archive_that_is_larger_than_the_set_is_not_unpacked(coloured, adopt, folder):
    for name in ("page.html", "cifar-10-batches-bin/data_batch_1.bin"):
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w:gz") as archive:
            info = tarfile.TarInfo(name)
            info.size = BOMB
            archive.addfile(info, io.BytesIO(bytes(BOMB)))
        files = {"cifar-10-binary.tar.gz": file.getvalue()}
        adopt("cifar10", files)
        small_sets.write(folder, files)
        used = peak(lambda: fault("cifar10", folder))
        assert "it holds more than the" in fault("cifar10", folder)
        assert used < SMALL


def test_an_error_of_python_itself_is_not_called_damage(grey, folder, monkeypatch):
    def broken(*arguments, **more):
        raise SystemError("AST constructor recursion depth mismatch")

    as_npz(folder, grey["mnist"][0])
    monkeypatch.setattr("numpy.load", broken)
    with pytest.raises(SystemError, match="recursion depth"):
        datasets.load("mnist", folder)
