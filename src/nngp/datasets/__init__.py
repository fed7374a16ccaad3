"""Data sets by name: the images of the paper and the UCI tables.

nngp.datasets.names()                 # "cifar10", "digits", "fashion_mnist", "mnist", "uci/boston"
nngp.datasets.load("mnist", "data")   # as they come; from a folder, a cache, or a download
nngp.datasets.split("mnist", 1000)    # the paper's training, validation and test sets
nngp.datasets.where("mnist", "data")  # where they would come from

`catalogue` and `uci` list the sets; `locations` names the folders to look in; `folder` finds the
files in any of their forms; `download` fetches them if there are none; `integrity` checks that they
are whole; `readers` and `tables` turn them into arrays, by `formats` and `pickled`; `load` joins
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
