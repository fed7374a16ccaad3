"""Catalogue of the image sets: sizes, classes, servers, and the checksums of their files.

The MD5 sums are those that the authors, torchvision and Keras publish. MD5 guards against damage,
not against a forger; so nothing that is read here can run code, whatever its sum.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ImageSet:
    """One set of images. `downloads` are the files on each of `servers` (tried in this order), with
    their sizes in bytes; `md5` has the sum of every original file by its name."""

    name: str
    title: str
    shape: tuple[int, ...]
    train: int
    test: int
    class_names: tuple[str, ...]
    validation: int  # of the training images
    validation_first: bool  # the first of them, or the last
    folders: tuple[str, ...] = ()  # below a data folder, where the original files may lie
    servers: tuple[str, ...] = ()
    downloads: Mapping[str, int] = field(default_factory=dict)
    md5: Mapping[str, str] = field(default_factory=dict)

    @property
    def most_training(self) -> int:
        """Training images without those for validation."""
        return self.train - self.validation


IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
DIGITS = tuple("0123456789")


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


def _idx_sums(packed: str, raw: str) -> dict[str, str]:
    zipped = dict(zip((f"{name}.gz" for name in IDX_FILES), packed.split(), strict=True))
    return zipped | dict(zip(IDX_FILES, raw.split(), strict=True))


def _idx_bytes(*sizes: int) -> dict[str, int]:
    return dict(zip((f"{name}.gz" for name in IDX_FILES), sizes, strict=True))


MNIST = ImageSet(
    name="mnist",
    title="MNIST, handwritten digits",
    shape=(28, 28),
    train=60_000,
    test=10_000,
    class_names=DIGITS,
    validation=10_000,
    validation_first=True,
    folders=("MNIST/raw", "mnist", ""),
    servers=(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
    ),
    downloads=_idx_bytes(9_912_422, 28_881, 1_648_877, 4_542),
    md5=_idx_sums(
        "f68b3c2dcbeaaa9fbdd348bbdeb94873 d53e105ee54ea40749a09fcbcd1e9432 "
        "9fb629c4189551a2d022fa330f9573f3 ec29112dd5afa0611ce80d1b7f02629c",
        "6bbc9ace898e44ae57da46a324031adb a25bea736e30d166cdddb491f175f624 "
        "2646ac647ad5339dbf082846283269ea 27ae3e4e09519cfbb04c329615203637",
    ),
)

FASHION_MNIST = ImageSet(
    name="fashion_mnist",
    title="Fashion-MNIST, articles of clothing",
    shape=(28, 28),
    train=60_000,
    test=10_000,
    class_names=_names(
        "T-shirt/top, trouser, pullover, dress, coat, sandal, shirt, sneaker, bag, ankle boot"
    ),
    validation=10_000,
    validation_first=True,
    folders=("FashionMNIST/raw", "fashion-mnist", "fashion_mnist", ""),
    servers=(
        "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
    downloads=_idx_bytes(26_421_880, 29_515, 4_422_102, 5_148),
    md5=_idx_sums(
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d 25c81989df183df01b3e8a0aad5dffbe "
        "bef4ecab320f06d8554ea6380940ec79 bb300cfdad3c16e7a12a480ee83cd310",
        "f4a8712d7a061bf5bd6d2ca38dc4d50a 9018921c3c673c538a1fc5bad174d6f9 "
        "8181f5470baa50b63fa0f6fddb340f0a 15d484375f8d13e6eb1aabb0c3f46965",
    ),
)

_BINARY = (
    "5dd7e06a14cb22eb9f671a540d1b7c25 5ea93a67294ea407fff1d09f752e9692 "
    "942cd6a4bcdd0dd3c604fbe906cb4421 ae636b3ba5c66a11e91e8cb52e771fcb "
    "53f37980c15c3d472c316c40844f3f0d 803d5f7f4d78ea53de84dbe85f74fb6d"
)
_PICKLED = (
    "c99cafc152244af753f735de768cd75f d4bba439e000b95fd0a9bffe97cbabec "
    "54ebc095f3ab1f0389bbae665268c751 634d18415352ddfa80567beed471001a "
    "482c414d41f54cd18b22e5b47cb7c3cb 40351d587109b95175f43aff81a1287e"
)
BINARY_TAR = "cifar-10-binary.tar.gz"
PYTHON_TARS = (  # the authors' name, Keras 2's, Keras 3's
    "cifar-10-python.tar.gz",
    "cifar-10-batches-py.tar.gz",
    "cifar-10-batches-py-target_archive",
)

CIFAR10 = ImageSet(
    name="cifar10",
    title="CIFAR-10, small photographs",
    shape=(32, 32, 3),
    train=50_000,
    test=10_000,
    class_names=_names("airplane, automobile, bird, cat, deer, dog, frog, horse, ship, truck"),
    validation=5_000,
    validation_first=False,
    servers=("https://www.cs.toronto.edu/~kriz/",),
    downloads={BINARY_TAR: 170_052_171},
    md5={
        **{f"{b}.bin": s for b, s in zip(BATCHES, _BINARY.split(), strict=True)},
        **dict(zip(BATCHES, _PICKLED.split(), strict=True)),
        BINARY_TAR: "c32a1d4ab5d03f1284b67883e8d87530",
        **dict.fromkeys(PYTHON_TARS, "c58f30108f718f92721af3b95e74349a"),
    },
)

SKLEARN_DIGITS = ImageSet(
    name="digits",
    title="handwritten digits, 8 x 8 pixels",
    shape=(8, 8),
    train=1297,
    test=500,
    class_names=DIGITS,
    validation=297,
    validation_first=False,
)

IMAGE_SETS = {entry.name: entry for entry in (CIFAR10, SKLEARN_DIGITS, FASHION_MNIST, MNIST)}
