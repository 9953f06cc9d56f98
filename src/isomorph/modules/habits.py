"""Attributes of modules in other libraries, and what to write here instead.

Modules do not have these attributes: `hasattr` is False, and the AttributeError gives the advice.
"""

from __future__ import annotations

ARRAYS = "the arrays of most layers are named w and b; module.v is the nest of all arrays"
BELOW = "module.sub_mods(show_v=False) is the nest of its submodules"
LOADING = (
    "assign a nest to module.v and module.state, use iso.load(path, module) for a file, or "
    "iso.export.from_torch_state_dict(module, state_dict)"
)
MOVING = 'iso.convert(module, "torch", device=None) copies it to another backend or device'
SAVING = "write iso.save(path, module), and iso.load(path, module)"
TRAINED = "module.v is the nest of trained arrays, module.state of state and frozen arrays"
DTYPE = 'create it within iso.use_backend(name, dtype="float64")'

WORDS = {
    "parameters": TRAINED,
    "named_parameters": TRAINED,
    "params": TRAINED,
    "buffers": TRAINED,
    "named_buffers": TRAINED,
    "variables": TRAINED,
    "trainable_variables": TRAINED,
    "trainable_weights": TRAINED,
    "non_trainable_variables": TRAINED,
    "weights": TRAINED,
    "get_weights": TRAINED,
    "set_weights": "assign a nest of the same structure to module.v",
    "state_dict": f"{TRAINED}; to keep them in a file, iso.save(path, module)",
    "load_state_dict": LOADING,
    "weight": ARRAYS,
    "bias": ARRAYS,
    "kernel": ARRAYS,
    "to": MOVING,
    "cpu": MOVING,
    "cuda": MOVING,
    "to_device": MOVING,
    "half": DTYPE,
    "bfloat16": DTYPE,
    "float": DTYPE,
    "double": DTYPE,
    "zero_grad": "gradients are not stored: iso.grad and iso.value_and_grad return them",
    "grad": "iso.grad and iso.value_and_grad return gradients; modules do not store them",
    "requires_grad_": 'module.freeze("pattern") and unfreeze choose what is trained',
    "trainable": 'module.freeze("pattern") and unfreeze choose what is trained',
    "register_buffer": "set iso.State(value) as an attribute",
    "register_parameter": "set the array as an attribute",
    "add_module": "set the module as an attribute",
    "add_weight": "set the array as an attribute",
    "modules": BELOW,
    "named_modules": BELOW,
    "children": BELOW,
    "named_children": BELOW,
    "layers": BELOW,
    "fit": "write iso.fit(module, data, loss, optimizer, epochs)",
    "compile": "write iso.jit(module), iso.train_step(loss, optimizer) or iso.fit",
    "train_on_batch": "write iso.train_step(loss, optimizer)",
    "evaluate": "write iso.evaluate(module, data, metrics)",
    "predict": "call it: module.eval()(x)",
    "summary": "write iso.summary(module, x)",
    "save": SAVING,
    "load": SAVING,
    "save_weights": SAVING,
    "load_weights": SAVING,
    "init": "a module makes its arrays in __init__; module.apply(v, state, x) is the pure function",
}


def said(owner: str, name: str) -> str:
    """The message of the AttributeError."""
    other = WORDS.get(name)
    return f"{owner} has no attribute {name!r}" + (f"; {other}" if other else "")
