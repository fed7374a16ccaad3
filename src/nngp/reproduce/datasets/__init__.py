"""The data sets of the paper, from a folder, a cache, or their homes.

The way of a set: `catalogue` and `uci` say what there is; `places` where to look; `folder` finds
the files in whatever form they are; `download` fetches them if there are none; `integrity` sees
that they are whole; `readers` and `tables` make arrays of them, by `formats` and `pickled`; `load`
puts it all together, and `split` makes the paper's training, validation and test sets.
"""

from nngp.reproduce.datasets.load import (
    Images as Images,
    Place as Place,
    load as load,
    names as names,
    where as where,
)
from nngp.reproduce.datasets.split import Split as Split, split as split
from nngp.reproduce.datasets.tables import Table as Table
