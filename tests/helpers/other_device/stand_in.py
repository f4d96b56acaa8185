"""A stand-in for a GPU: its tensors live on the CPU, but it is as strict as CUDA about tensors that are elsewhere.

It finds tensors on the wrong device, and counts how often the program waits for the device; not what its kernels do.
"""

import inspect
from collections import Counter
from pathlib import Path

import torch
from torch import Tensor
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend


_setup_privateuseone_for_python_backend("other")
DEVICE = torch.device("other:0")
# What may take tensors of both sides: copies, and the places that a tensor of the device is picked from.
COPIES, PICKS = {"_to_copy", "copy_", "_copy_from"}, {"index", "index_put", "index_put_"}
# What a program gets to know, and so has to wait for; besides copies from and to the CPU and picking by a mask.
TOLD = {"_local_scalar_dense", "equal", "nonzero", "bincount", "masked_select", "_unique2", "repeat_interleave.Tensor"}
TORCH = f"{Path(torch.__file__).parent}/"
waits: Counter[str] = Counter()


class OtherTensor(Tensor):
    """A tensor on the stand-in device."""

    @staticmethod
    def __new__(cls, here: Tensor):
        places = {"strides": here.stride(), "storage_offset": here.storage_offset()}
        return Tensor._make_wrapper_subclass(cls, here.shape, dtype=here.dtype, device=DEVICE, **places)

    def __init__(self, here: Tensor):
        self.here = here

    def __repr__(self, **kwargs):
        return f"OtherTensor({self.here})"

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function is Tensor.tolist:
            _wait()
            return args[0].here.tolist()
        with torch._C.DisableTorchFunctionSubclass():
            return function(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return _run(function, args, kwargs or {})


def _run(function, args, kwargs):
    """Compute on the CPU what a function of the device is asked for."""
    name, tensors = function.overloadpacket.__name__, _tensors((*args, *kwargs.values()))
    there = [tensor for tensor in tensors if isinstance(tensor, OtherTensor)]
    places = _tensors(args[1:2]) if name in PICKS and isinstance(args[0], OtherTensor) else []
    strangers = [tensor for tensor in tensors if not isinstance(tensor, OtherTensor) and tensor.dim()]
    if there and name not in COPIES and any(not any(each is place for place in places) for each in strangers):
        raise RuntimeError(f"{function}: tensors on {DEVICE} and on the {strangers[0].device}")
    stays = bool(there)
    if "copy_" in name:
        stays = isinstance(args[1 if name == "_copy_from" else 0], OtherTensor)
    if kwargs.get("device") is not None:
        stays = kwargs["device"].type == DEVICE.type
        kwargs = {**kwargs, "device": torch.device("cpu")}
    by_mask = any(place.dtype == torch.bool for place in places)
    told = not stays or by_mask or TOLD & {name, f"{name}.{function._overloadname}"}
    if (there and told) or (stays and strangers and not (kwargs.get("non_blocking") or args[-1] is True)):
        _wait()
    outputs = function(*_map(_here, args), **{key: _here(value) for key, value in kwargs.items()})
    # What was changed in place comes back as itself.
    known = {id(tensor.here): tensor for tensor in there}

    def wrap(output):
        if not (isinstance(output, Tensor) and stays):
            return output
        return known[id(output)] if id(output) in known else OtherTensor(output)

    return _map(wrap, (outputs,))[0]


def _map(function, given):
    """Of every element of nested lists and tuples."""
    return type(given)(_map(function, each) if type(each) in (list, tuple) else function(each) for each in given)


def _tensors(given):
    return [
        part
        for each in given
        for part in (_tensors(each) if type(each) in (list, tuple) else [each])
        if isinstance(part, Tensor)
    ]


def _here(given):
    return given.here if isinstance(given, OtherTensor) else given


def _wait() -> None:
    """Note which module outside of torch has to wait."""
    frame = inspect.currentframe()
    while frame and frame.f_code.co_filename.startswith((TORCH, __file__)):
        frame = frame.f_back
    waits[frame.f_globals["__name__"] if frame else "torch"] += 1


# What makes tensors, which takes none of the device to begin with.
_library = torch.library.Library("aten", "IMPL")
ARANGES = ("arange", "arange.start", "arange.start_step")
for _name in ("empty_strided", "empty.memory_format", *COPIES, *ARANGES):
    _packet, _, _overload = _name.partition(".")
    _function = getattr(getattr(torch.ops.aten, _packet), _overload or "default")
    _library.impl(_name, lambda *args, _function=_function, **kwargs: _run(_function, args, kwargs), "PrivateUse1")
