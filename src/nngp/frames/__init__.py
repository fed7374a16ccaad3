"""Columns of a table as inputs of a network: encoded as numbers, mapped, scaled, whitened.

`data_frames` makes an `InputTable` (`table`) of a data frame. `encoder` holds `Columns`, which is
learned from a table in `fit`, saved with the model, and applied in `predict`: a `NumberEncoding`
(`number`), a `DateEncoding` (`date`) or a `CategoryEncoding` (`category`) for each column that is
used. `texts` decides what a column of text holds, and which texts stand for no value, with
`amounts` (numbers as people write them) and `calendar` (dates as people write them). `scaling`
turns numbers into inputs, with monotone `maps` of single columns, relevances, or `whitening`.
Nothing here imports pandas or polars.
"""

from nngp.frames.data_frames import TableLike, is_nothing, mixed_table, table_of
from nngp.frames.encoder import Columns, reading_of_amounts
from nngp.frames.number import NumberEncoding, fill_gaps, learn_numbers
from nngp.frames.table import Column, InputTable
from nngp.frames.texts import TextKind, kind_of_text, missing_texts, with_decimal_mark

__all__ = [
    "Column",
    "Columns",
    "InputTable",
    "NumberEncoding",
    "TableLike",
    "TextKind",
    "fill_gaps",
    "is_nothing",
    "kind_of_text",
    "learn_numbers",
    "missing_texts",
    "mixed_table",
    "reading_of_amounts",
    "table_of",
    "with_decimal_mark",
]
