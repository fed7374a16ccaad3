"""Data by name: the images of the paper and the UCI tables.

nngp.datasets.names()                 # "cifar10", "digits", "fashion_mnist", "mnist", "uci/boston"
nngp.datasets.load("mnist", "data")   # as they come; from a folder, a cache, or a download
nngp.datasets.split("mnist", 1000)    # the paper's training, validation and test sets
nngp.datasets.where("mnist", "data")  # where they would come from
"""

from nngp.reproduce.datasets import (
    Images as Images,
    Place as Place,
    Split as Split,
    Table as Table,
    load as load,
    names as names,
    split as split,
    where as where,
)
