"""The variants: each changes one thing of the reference, and some change several."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import ablation_images as im
import numpy as np
from numpy.typing import NDArray

Kernel = Literal["authors", "whole range", "fine", "defaults", "exact"]


@dataclass(frozen=True)
class Variant:
    """One way to repeat the paper's rows.

    `steps` treat images before `inputs` makes rows of them; `choose` takes the training images;
    `kernel` is a look-up table or "exact" (see `ablation_runs.py`). With `dense` K is one matrix in
    `dtype` (`ablation_dense.py`), where `clamped` ends the table at its last correlation.
    """

    name: str
    group: str
    what: str
    steps: tuple[im.Step, ...] = ()
    inputs: Callable[[im.Pixels], NDArray[np.float64]] = im.centred
    choose: im.Choice = im.first_of_each_class
    kernel: Kernel = "authors"
    targets: tuple[float, float] = (-0.1, 0.9)
    noise_var: float = 1e-10
    dense: bool = False
    dtype: str = "float64"
    clamped: bool = False
    activations: tuple[str, ...] = field(default=("relu", "tanh"))


REFERENCE = Variant(
    "reference",
    "reference",
    "every image centred and scaled to unit variance, one-hot targets less 0.1, noise 1e-10, the "
    "authors' table, the first n/10 of every class, the last 5,000 held out",
)


def _other(name: str, group: str, what: str, **changes: object) -> Variant:
    return replace(REFERENCE, name=name, group=group, what=what, **changes)  # type: ignore[arg-type]


def _pixels() -> list[Variant]:
    both, group = im.on_both, "pixels"
    channels = (im.standardised_channels,)
    return [
        _other("not centred", group, "unit norm only", inputs=im.unit_norm),
        _other(
            "less mean pixel",
            group,
            "the training set's mean pixel subtracted, images not centred",
            steps=(im.without_mean_pixel,),
            inputs=im.unit_norm,
        ),
        _other(
            "less mean image",
            group,
            "the training set's mean image subtracted, images not centred",
            steps=(im.without_mean_image,),
            inputs=im.unit_norm,
        ),
        _other(
            "less mean image, centred",
            group,
            "the mean image subtracted, then every image centred",
            steps=(im.without_mean_image,),
        ),
        _other(
            "channels standardised",
            group,
            "channels standardised over the training set, images not centred",
            steps=channels,
            inputs=im.unit_norm,
        ),
        _other(
            "channels standardised, centred",
            group,
            "channels standardised, then every image centred",
            steps=channels,
        ),
        _other(
            "pixels standardised",
            group,
            "every pixel standardised over the training set, images not centred",
            steps=(im.standardised_pixels,),
            inputs=im.unit_norm,
        ),
        _other(
            "image channels centred",
            group,
            "every channel of every image centred",
            steps=(both(im.channels_centred),),
            inputs=im.unit_norm,
        ),
        _other(
            "unequal norms",
            group,
            "channels standardised, images neither centred nor scaled; the table needs equal "
            "norms, so the kernel is exact, and relu only",
            steps=channels,
            inputs=im.as_they_are,
            kernel="exact",
            activations=("relu",),
        ),
        _other("pixels 0 to 1", group, "pixels divided by 255", steps=(both(im.unit_scale),)),
        _other("channels first", group, "order of the inputs", steps=(both(im.channels_first),)),
        _other("bytes overflow", group, "mean subtracted in bytes", steps=(im.overflowing,)),
    ]


def _pictures() -> list[Variant]:
    both, group = im.on_both, "pictures"
    return [
        _other("grey", group, "luminance only", steps=(both(im.luminance),)),
        _other("16 x 16", group, "means of 2 x 2 pixels", steps=(both(im.means_of(2)),)),
        _other("8 x 8", group, "means of 4 x 4 pixels", steps=(both(im.means_of(4)),)),
        _other(
            "every 2nd pixel", group, "16 x 16, the others left out", steps=(both(im.every(2)),)
        ),
        _other("every 4th pixel", group, "8 x 8, the others left out", steps=(both(im.every(4)),)),
        _other("middle 28", group, "the middle 28 x 28 pixels", steps=(both(im.middle(28)),)),
        _other("middle 24", group, "the middle 24 x 24 pixels", steps=(both(im.middle(24)),)),
        _other("middle 20", group, "the middle 20 x 20 pixels", steps=(both(im.middle(20)),)),
        _other("flipped", group, "training images mirrored by chance", steps=(im.flipped,)),
        _other(
            "windows 24",
            group,
            "random windows of 24 x 24, mirrored by chance, for training; the middle for tests",
            steps=(im.shifted_windows(24), im.flipped),
        ),
    ]


def _images() -> list[Variant]:
    group = "images"
    return [
        _other(
            "first 5,000 held out",
            group,
            "the first 5,000 held out instead of the last",
            choose=im.beyond_the_first,
        ),
        _other("first n", group, "the first n, classes as they come", choose=im.first_rows),
        _other(
            "eight ninths",
            group,
            "eight ninths of the images, as 40,000 of 45,000",
            choose=im.eight_ninths,
        ),
        _other("share 0.6", group, "60% of the images", choose=im.first_share(0.6)),
        _other(
            "with replacement",
            group,
            "n draws with replacement from the n images",
            choose=im.with_replacement(),
        ),
        *(
            _other(
                f"with replacement {seed}",
                group,
                "the same, other draws",
                choose=im.with_replacement(seed),
            )
            for seed in range(2, 6)
        ),
        *(
            _other(f"random {seed}", group, "images at random", choose=im.at_random(seed))
            for seed in range(1, 6)
        ),
    ]


def _numbers() -> list[Variant]:
    group = "numbers"
    return [
        _other("exact", group, "the exact kernel", kernel="exact"),
        _other("whole range", group, "a table with u in ±60", kernel="whole range"),
        _other("fine", group, "the authors' table with 2,000 correlations", kernel="fine"),
        _other(
            "defaults",
            group,
            "sizes that are the defaults of the authors' class",
            kernel="defaults",
            dense=True,
        ),
        _other("clamped", group, "the table ends at correlation 0.99999", dense=True, clamped=True),
        _other("float32", group, "all in float32", dense=True, dtype="float32"),
        _other("noise 1e-3", group, "noise 1e-3", noise_var=1e-3),
        _other("noise 0.1", group, "noise 0.1, the end of the ladder", noise_var=0.1),
        _other("targets 0, 1", group, "one-hot targets", targets=(0.0, 1.0)),
        _other("targets ±1", group, "targets -1 and 1", targets=(-1.0, 1.0)),
    ]


def _combinations() -> list[Variant]:
    group, cut = "combinations", im.on_both(im.middle(24))
    return [
        _other(
            "middle 24, not centred",
            group,
            "the middle 24 x 24 pixels, unit norm only",
            steps=(cut,),
            inputs=im.unit_norm,
        ),
        _other(
            "middle 24, first 5,000 held out",
            group,
            "the middle 24 x 24 pixels, the first 5,000 held out",
            steps=(cut,),
            choose=im.beyond_the_first,
        ),
        *(
            _other(
                f"middle 24, random {seed}",
                group,
                "the middle 24 x 24 pixels, images at random",
                steps=(cut,),
                choose=im.at_random(seed),
            )
            for seed in range(1, 6)
        ),
    ]


VARIANTS = {
    variant.name: variant
    for variant in (
        REFERENCE,
        *_pixels(),
        *_pictures(),
        *_images(),
        *_numbers(),
        *_combinations(),
    )
}
