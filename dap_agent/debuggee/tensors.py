"""Summaries of torch tensors: shape, dtype, device; values only where reading them runs nothing of the program's."""

from __future__ import annotations

import types
from typing import Any

from . import arrays, reading
from .reading import MISSING


def put_tensor(f: Any, value: Any, depth: int) -> None:
    """A torch tensor: shape, dtype, device; values only of a small one in memory with no mode of the user's active."""
    cls = type(value)
    name = f.kind(cls)[1]
    base = reading.lookup(reading.loaded_module("torch"), "Tensor")
    parameter = reading.loaded_module("torch.nn.parameter")
    if cls is not base and (parameter is None or cls is not reading.lookup(parameter, "Parameter")):
        f.write("<%s object>" % name)  # another subclass may answer by its __torch_function__
        return
    shape = [int(side) for side in tuple.__iter__(reading.read(value, "shape"))]
    dtype, device = str(reading.read(value, "dtype")), str(reading.read(value, "device"))
    summary: dict[str, Any] = {"shape": shape, "dtype": dtype, "device": device}
    gradient = reading.read(value, "requires_grad")
    if type(gradient) is bool:
        summary["requires_grad"] = gradient
    f.write("%s(shape=%s, dtype=%s, device=%s" % (name, tuple(shape), dtype, device))
    size = 1
    for side in shape:
        size *= side
    if f.whole(depth):
        f.length = shape[0] if shape else None
        f.summary = summary
    if device == "cpu" and size and _no_torch_modes():
        flat = _tensor_method("detach")(value)
        head = (
            _tensor_method("tolist")(_tensor_method("reshape")(flat, (-1,))[: f.limits.items]) if _strided(flat) else []
        )
        f.write(", [")
        arrays.put_items(f, head, size, depth)
        f.write("]")
        if f.whole(depth):
            summary["head"] = [arrays.cell(f, item) for item in head[: arrays.HEAD]]
            if size <= arrays.SAMPLE and dtype in ("torch.float64", "torch.float32", "torch.float16", "torch.bfloat16"):
                summary["nan"] = int(_tensor_method("sum")(_tensor_method("ne")(flat, flat)))
    f.write(")")


def _tensor_method(name: str) -> Any:
    base = reading.lookup(reading.loaded_module("torch"), "Tensor")
    method = reading.class_attribute(base, name)
    if type(method) is not types.MethodDescriptorType:
        raise TypeError("torch.Tensor.%s is not written in C" % name)
    return method


def _strided(tensor: Any) -> bool:
    return str(reading.read(tensor, "layout")) == "torch.strided" and reading.read(tensor, "is_meta") is not True


def _no_torch_modes() -> bool:
    """Whether no `TorchFunctionMode` or `TorchDispatchMode` of the user's would see the operations."""
    inner = reading.loaded_module("torch._C")
    for name in ("_len_torch_function_stack", "_len_torch_dispatch_stack"):
        count = reading.lookup(inner, name) if inner is not None else MISSING
        if type(count) is not types.BuiltinFunctionType or count() != 0:
            return False
    return True
