"""Data sets by name: the images of the paper and the UCI tables.

nngp.datasets.names()                 # "cifar10", "digits", "fashion_mnist", "mnist", "uci/boston"
nngp.datasets.load("mnist", "data")   # as they come; from a folder, a cache, or a download
nngp.datasets.split("mnist", 1000)    # the paper's training, validation and test sets
nngp.datasets.where("mnist", "data")  # where they would come from

`catalogue` lists the image sets and `tables` the UCI tables; `folder` finds the files of an image
set in any of their layouts; `download` gets them from a server if there are none; `files` reads
files and checks that they are complete; `formats` and `readers` turn them into arrays; `load` joins
these steps, and `split` makes the paper's training, validation and test sets.
"""

from nngp.datasets.load import (
    Images as Images,
    Place as Place,
    load as load,
    names as names,
    where as where,
)
from nngp.datasets.split import Split as Split, split as split
from nngp.datasets.tables import Table as Table
