"""What programs written for PyTorch ask about CUDA: tinyfin has no such backend, and says so.

GPUs are reached through the backends that `tinyfin.backend_list()` names.
"""


def is_available() -> bool:
    """Whether there is a CUDA device for tinyfin: there is none.

    >>> import tinyfin
    >>> "cuda" if tinyfin.cuda.is_available() else "cpu"
    'cpu'
    """
    return False


def device_count() -> int:
    """The number of CUDA devices: 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Seeds the generators of CUDA devices, of which there are none."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Gives back cached memory of CUDA devices, of which there are none."""
