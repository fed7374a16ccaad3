"""Log evidence, leave-one-out, and their derivatives.

`criteria` has them as functions of plain arrays. `tiled_gradients` computes the derivatives from a
factor in tiles, `dense_evidence` all of it in one call for the search, on problems of one machine.
"""
