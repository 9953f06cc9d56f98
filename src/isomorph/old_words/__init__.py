"""The words of Ivy, the abandoned library by whose tests isomorph was first measured, as thin
functions over the rules of `gradients/`, `modules/` and `optimizers/`. They stay; new programs need
none of them: `value_and_grad` for `execute_with_gradients`, `iso.optimizers` for the updates,
`iso.stop_gradient` for `with_grads`.
"""
