"""Four doubles as one value, for inner loops that the compiler takes apart.

Where the body of a loop is a fixed number of steps, LLVM writes these out before it looks for loops to vectorise, and
numba leaves out the pass that would find them then. A `Four` is what the processor's vector instructions work on; those
that have shorter ones take two of them. Functions here are for compiled loops only, and work element by element.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

_DOUBLES = ir.VectorType(ir.DoubleType(), 4)
_NUMBER = ir.IntType(32)


class Four(types.Type):  # type: ignore[misc]
    """Numba's name for four doubles."""

    def __init__(self) -> None:
        super().__init__("Four")


_four = Four()


@register_model(Four)
class _FourModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, _DOUBLES)


def _chosen(builder: Any, vector: Any, *elements: int) -> Any:
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(_NUMBER, len(elements)), list(elements)))


def _place(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    array = context.make_array(array_type)(context, builder, array)
    place = cgutils.get_item_pointer(context, builder, array_type, array, [index], wraparound=False)
    return builder.bitcast(place, _DOUBLES.as_pointer())


def _holds_fours(array: Any) -> bool:
    return isinstance(array, types.Array) and (array.ndim, array.dtype, array.layout) == (1, types.float64, "C")


@intrinsic  # type: ignore[untyped-decorator]
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """Return array[index : index + 4] of contiguous doubles; the index is not negative."""
    if not _holds_fours(array):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_place(context, builder, signature.args[0], *arguments), align=8)

    return _four(array, index), generate


@intrinsic  # type: ignore[untyped-decorator]
def store(typing_context: Any, four: Any, array: Any, index: Any) -> Any:
    """Put four into array[index : index + 4], as `load` takes it."""
    if not _holds_fours(array):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        four, *place = arguments
        builder.store(four, _place(context, builder, signature.args[1], *place), align=8)
        return context.get_dummy_value()

    return types.void(four, array, index), generate


@intrinsic  # type: ignore[untyped-decorator]
def pack(typing_context: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Return four doubles as one value."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        four = ir.Constant(_DOUBLES, ir.Undefined)
        for element, x in enumerate(arguments):
            four = builder.insert_element(four, x, _NUMBER(element))
        return four

    return _four(types.float64, types.float64, types.float64, types.float64), generate


@intrinsic  # type: ignore[untyped-decorator]
def plus(typing_context: Any, v: Any, w: Any) -> Any:
    """Return v + w."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments)

    return _four(_four, _four), generate


@intrinsic  # type: ignore[untyped-decorator]
def times(typing_context: Any, x: Any, v: Any) -> Any:
    """Return x v, x a double."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        x, v = arguments
        four = builder.insert_element(ir.Constant(_DOUBLES, ir.Undefined), x, _NUMBER(0))
        return builder.fmul(_chosen(builder, four, 0, 0, 0, 0), v)

    return _four(types.float64, _four), generate


@intrinsic  # type: ignore[untyped-decorator]
def dot(typing_context: Any, v: Any, w: Any) -> Any:
    """Return (v0 w0 + v2 w2) + (v1 w1 + v3 w3)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        products = builder.fmul(*arguments)
        sums = builder.fadd(_chosen(builder, products, 0, 1), _chosen(builder, products, 2, 3))
        return builder.fadd(*(builder.extract_element(sums, _NUMBER(element)) for element in (0, 1)))

    return types.float64(_four, _four), generate
