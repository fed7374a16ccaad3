"""Ways to make inputs of images, and ways to choose the images to train on.

A step takes the training and the test images, (n, height, width, channels), and returns both. What
a step has to know of the data, a mean say, it learns from the training images.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nngp
from nngp_paper.datasets.split import balanced

Pixels = NDArray[Any]  # bytes, or floats after a step
Step = Callable[[Pixels, Pixels], tuple[Pixels, Pixels]]
Rows = NDArray[np.intp]
Choice = Callable[[NDArray[np.int64], int], Rows]  # of n among the labelled training images
POOL = 45_000  # images that the paper trains on; the other 5,000 choose a network
SEED = 20_180_430


def on_both(function: Callable[[Pixels], Pixels]) -> Step:
    """A step that treats every image by itself."""
    return lambda train, test: (function(train), function(test))


def channels_first(images: Pixels) -> Pixels:
    return images.transpose(0, 3, 1, 2)


def unit_scale(images: Pixels) -> Pixels:
    """0..255 to 0..1."""
    return images / 255.0


def luminance(images: Pixels) -> Pixels:
    """One grey channel, weighted as in television (ITU-R BT.601)."""
    return (images @ np.array([0.299, 0.587, 0.114]))[..., None]


def middle(size: int) -> Callable[[Pixels], Pixels]:
    """The square of `size` pixels in the middle."""

    def cut(images: Pixels) -> Pixels:
        start = (images.shape[1] - size) // 2
        return images[:, start : start + size, start : start + size]

    return cut


def means_of(size: int) -> Callable[[Pixels], Pixels]:
    """Means of squares of `size` pixels."""

    def shrink(images: Pixels) -> Pixels:
        n, height, width, channels = images.shape
        blocks = images.reshape(n, height // size, size, width // size, size, channels)
        return blocks.mean(axis=(2, 4))

    return shrink


def every(step: int) -> Callable[[Pixels], Pixels]:
    """Every second or fourth pixel of every second or fourth row."""
    return lambda images: images[:, ::step, ::step]


def channels_centred(images: Pixels) -> Pixels:
    """Each channel of each image with mean zero."""
    return images - images.mean(axis=(1, 2), keepdims=True)


def without_mean_pixel(train: Pixels, test: Pixels) -> tuple[Pixels, Pixels]:
    """Less one number, the mean of all training pixels."""
    mean = train.mean()
    return train - mean, test - mean


def without_mean_image(train: Pixels, test: Pixels) -> tuple[Pixels, Pixels]:
    mean = train.mean(axis=0)
    return train - mean, test - mean


def standardised_channels(train: Pixels, test: Pixels) -> tuple[Pixels, Pixels]:
    """Each channel with mean 0 and deviation 1 over the training images."""
    mean, deviation = train.mean(axis=(0, 1, 2)), train.std(axis=(0, 1, 2))
    return (train - mean) / deviation, (test - mean) / deviation


def standardised_pixels(train: Pixels, test: Pixels) -> tuple[Pixels, Pixels]:
    """Each pixel with mean 0 and deviation 1 over the training images."""
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    return (train - mean) / deviation, (test - mean) / deviation


def overflowing(train: Pixels, test: Pixels) -> tuple[Pixels, Pixels]:
    """The mean pixel subtracted in unsigned bytes: what is negative becomes bright."""
    mean = np.uint8(round(float(train.mean())))
    return train - mean, test - mean


def flipped(train: Pixels, test: Pixels) -> tuple[Pixels, Pixels]:
    """Every second training image, by chance, is its mirror image."""
    mirrored = np.random.default_rng(SEED).random(len(train)) < 0.5
    return np.where(mirrored[:, None, None, None], train[:, :, ::-1], train), test


def shifted_windows(size: int) -> Step:
    """Training: a square at a random place; testing: the one in the middle."""

    def step(train: Pixels, test: Pixels) -> tuple[Pixels, Pixels]:
        places = np.random.default_rng(SEED).integers(0, train.shape[1] - size + 1, (len(train), 2))
        pairs = zip(train, places.tolist(), strict=True)
        windows = [image[y : y + size, x : x + size] for image, (y, x) in pairs]
        return np.stack(windows), middle(size)(test)

    return step


def _rows_of(images: Pixels) -> NDArray[np.float64]:
    return images.reshape(len(images), -1).astype(np.float64)


def centred(images: Pixels) -> NDArray[np.float64]:
    """Every image with mean 0 and variance 1: what the authors' code does."""
    return nngp.normalize(_rows_of(images), center=True)


def unit_norm(images: Pixels) -> NDArray[np.float64]:
    """Every image with x·x/d = 1, not centred: all that the paper mentions."""
    return nngp.normalize(_rows_of(images))


def as_they_are(images: Pixels) -> NDArray[np.float64]:
    """Images of different norms."""
    return _rows_of(images)


def first_of_each_class(labels: NDArray[np.int64], n: int) -> Rows:
    """The first n/10 of every class; the last 5,000 images are held out."""
    return balanced(labels[:POOL], n)


def beyond_the_first(labels: NDArray[np.int64], n: int) -> Rows:
    """The same with the first 5,000 images held out."""
    held_out = len(labels) - POOL
    return held_out + balanced(labels[held_out:], n)


def first_rows(labels: NDArray[np.int64], n: int) -> Rows:
    """The first n, classes as they come."""
    return np.arange(n)


def at_random(seed: int) -> Choice:
    """5,000 images held out at random, and n/10 of every class at random from the others."""

    def choose(labels: NDArray[np.int64], n: int) -> Rows:
        pool = np.random.default_rng(seed).permutation(len(labels))[:POOL]
        return pool[balanced(labels[pool], n)]

    return choose


def with_replacement(seed: int = SEED) -> Choice:
    """n draws from the first n/10 of every class: 63% of these images, many of them repeated."""
    return lambda labels, n: np.random.default_rng(seed).choice(first_of_each_class(labels, n), n)


def eight_ninths(labels: NDArray[np.int64], n: int) -> Rows:
    """As if another 5,000 of 45,000 had been held out by mistake."""
    return first_of_each_class(labels, n * 8 // 9)


def first_share(share: float) -> Choice:
    """Fewer images than said: this share of n."""
    return lambda labels, n: first_of_each_class(labels, round(share * n))
