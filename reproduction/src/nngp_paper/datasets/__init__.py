"""Data sets by name: the images of the paper and the UCI tables.

datasets.names()                 # "cifar10", "digits", "fashion_mnist", "mnist", "uci/boston"
datasets.load("mnist", "data")   # as they come; from a folder, a cache, or a download
datasets.split("mnist", 1000)    # the paper's training, validation and test sets
datasets.where("mnist", "data")  # where they would come from

`catalogue` lists the image sets and `tables` the UCI tables; `folder` finds the files of an image
set in any of their layouts; `download` gets them from a server if there are none; `files` reads
files and checks that they are complete; `formats` and `readers` turn them into arrays; `load` joins
these steps, and `split` makes the paper's training, validation and test sets.
"""

from nngp_paper.datasets.load import (
    Images as Images,
    Place as Place,
    load as load,
    names as names,
    where as where,
)
from nngp_paper.datasets.split import Split as Split, split as split
from nngp_paper.datasets.tables import Table as Table
