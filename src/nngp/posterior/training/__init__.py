"""Networks of infinite width that gradient descent trains, and their ensembles.

`trained` is the ensemble, in terms of a `training_problem`: `converged` after training for ever,
`descent` after a time, by the eigenvectors that `spectrum` finds. `train_matrix_ensemble` takes
matrices that the caller has computed, `function_space` any loss, and `learning_rate` tells what is
stable.
"""
