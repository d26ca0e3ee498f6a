"""GPUs, by number, as spaCy's `--gpu-id` has them."""

import torch
from thinc.api import CupyOps, get_current_ops
from thinc.util import has_cupy_gpu

from ..errors import Errors

# What spaCy calls the processor.
NO_GPU = -1


def check_gpu(gpu_id: int) -> None:
    """gpu_id (int): of a GPU, or `NO_GPU`. RAISES (ValueError): EL325 if there is none of this
    number that spaCy can use. Nothing is loaded onto one."""
    n_gpus = count_gpus()
    if gpu_id != NO_GPU and not 0 <= gpu_id < n_gpus:
        raise ValueError(Errors.EL325.format(gpu_id=gpu_id, n_gpus=n_gpus))


def count_gpus() -> int:
    """RETURNS (int): How many GPUs spaCy can use, of which CuPy has to know, too."""
    return torch.cuda.device_count() if has_cupy_gpu else 0


def get_gpu_name() -> str:
    """RETURNS (str): Of the GPU that this process uses; "" for none."""
    return torch.cuda.get_device_name() if isinstance(get_current_ops(), CupyOps) else ""
