"""What saving and loading raise."""


class CheckpointError(ValueError):
    """A checkpoint that could not be written completely, is damaged, or does not fit the template
    it is loaded into; nothing has been changed or loaded.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     iso.load(file.name)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    isomorph.training.errors.CheckpointError: load: needed a safetensors file, got 0 bytes in ...
    """
