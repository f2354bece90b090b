"""Memory layouts, each declared once: arrays of kernels with their sizes, units and kinds."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models, register_default
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate, infer_getattr
from numba.extending import NativeValue, intrinsic, typeof_impl, unbox
from numba.np.arrayobj import make_array, populate_array

from rtmms.base.errors import warn_renamed

# Memory layouts, each declared once: which arrays a plant's kernels see, how large, in which unit, of which kind.
#
# From a `Layout` follow the arrays themselves (`make`), the record of addresses through which compiled code finds them,
# the part that a snapshot holds (`Record.memory`), memory of its own for another run of the same model (`Record.fork`),
# and fresh scratch (`Record.clear`). A kernel gets a record and reads `work.s` or `tree.topology`: compiled, the record
# is one pointer and a field is an array at an address that stands there; in plain Python it is an object with arrays.
#
#     WORK = Layout("Work", scratch("s", "rows", S_WIDTH), scratch("qdd", "n", unit="rad/s2"))
#
# A part of a record may be absent, None: a kernel that gets the part as an argument is then compiled without what it
# does with it (`if ground is not None`).


Array = npt.NDArray[Any]
Dimension = int | str
"""A number, or an expression of named sizes such as '13 + 2 * n'."""

MODEL = "model"
STATE = "state"
SCRATCH = "scratch"
INPUT = "input"
WHOLE, VIEW, NUMBER, PART = "whole", "view", "number", "part"
"""Kinds of fields.

model: constant, shared between runs. state: part of a snapshot. scratch: no content from one step to the next. given:
written from outside before a step. whole: all of the state in one array. view: an array of this record in another
shape. number: a single value, which the owner may change between steps; no kernel writes one. part: another record.
"""

FLOAT = "f8"
COMPLEX = "c16"
INTEGER = "i8"
FLAG = "b1"
_ITEMS = {FLOAT: types.float64, COMPLEX: types.complex128, INTEGER: types.int64, FLAG: types.boolean}
_WORD = ir.IntType(64)


class Field(NamedTuple):
    """Line of a layout.

    Attributes
    ----------
    name : str
        Name of the field.
    kind : str
        One of the kinds above.
    shape : tuple[Dimension, ...], optional
        Shape of an array; sizes that dimensions name are those of the given arrays.
    dtype : str, default FLOAT
        Type of the elements.
    unit : str, default ''
        Unit of the elements.
    fill : float, default 0.0
        First value of scratch and state.
    inner : Layout | None, optional
        Layout of a part.
    optional : bool, default False
        Whether an array or a number may be absent, as a part may.
    of : str, default ''
        Field that a view shows.
    """

    name: str
    kind: str
    shape: tuple[Dimension, ...] = ()
    dtype: str = FLOAT
    unit: str = ""
    fill: float = 0.0
    inner: Layout | None = None
    optional: bool = False
    of: str = ""


def aligned(*shape: int, dtype: Any = float) -> Array:
    """Return zeros that start on a cache line, so that no vector load crosses two.

    Parameters
    ----------
    *shape : int
        Shape of the array.
    dtype : Any, default float
        Type of the elements.

    Returns
    -------
    Array
        The array.
    """
    kind, line = np.dtype(dtype), 64
    size = math.prod(shape) * kind.itemsize
    raw = np.zeros(size + line, dtype=np.uint8)
    first = -raw.ctypes.data % line
    array: Array = raw[first : first + size].view(kind).reshape(shape)
    return array


def model(name: str, *shape: Dimension, dtype: str = FLOAT, unit: str = "", optional: bool = False) -> Field:
    """Return the field of a model's array.

    Parameters
    ----------
    name, *shape, dtype, unit, optional : str
        As of `Field`.

    Returns
    -------
    Field
        The field.
    """
    return Field(name, MODEL, shape, dtype, unit, optional=optional)


def state(name: str, *shape: Dimension, dtype: str = FLOAT, unit: str = "") -> Field:
    """Return the field of a state's array, FLOAT or INTEGER.

    Parameters
    ----------
    name, *shape, dtype, unit : str
        As of `Field`.

    Returns
    -------
    Field
        The field.
    """
    return Field(name, STATE, shape, dtype, unit)


def scratch(
    name: str, *shape: Dimension, dtype: str = FLOAT, unit: str = "", fill: float = 0.0, optional: bool = False
) -> Field:
    """Return the field of an array for intermediate results; an optional one exists if an array is given.

    Parameters
    ----------
    name, *shape, dtype, unit, fill, optional : str
        As of `Field`.

    Returns
    -------
    Field
        The field.
    """
    return Field(name, SCRATCH, shape, dtype, unit, fill, optional=optional)


def step_input(name: str, *shape: Dimension, dtype: str = FLOAT, unit: str = "") -> Field:
    """Return the field of an array that is written from outside before a step.

    Parameters
    ----------
    name, *shape, dtype, unit : str
        As of `Field`.

    Returns
    -------
    Field
        The field.
    """
    return Field(name, INPUT, shape, dtype, unit)


def given(name: str, *shape: Dimension, dtype: str = FLOAT, unit: str = "") -> Field:
    """Return `step_input(...)`, the new name of this function, with a warning.

    Parameters
    ----------
    name, *shape, dtype, unit : str
        As of `Field`.

    Returns
    -------
    Field
        The field.
    """
    warn_renamed("rtmms.base.memory", "given", "step_input")
    return step_input(name, *shape, dtype=dtype, unit=unit)


def whole(name: str) -> Field:
    """Return the field of all of the state in one array, of the size 'memory'.

    Parameters
    ----------
    name : str
        Name of the field.

    Returns
    -------
    Field
        The field.
    """
    return Field(name, WHOLE, ("memory",))


def view(name: str, of: str, *shape: Dimension) -> Field:
    """Return the field of an earlier array of the same record, in another shape.

    Parameters
    ----------
    name : str
        Name of the field.
    of : str
        Name of the earlier field.
    *shape : Dimension
        New shape.

    Returns
    -------
    Field
        The field.
    """
    return Field(name, VIEW, shape, of=of)


def number(name: str, dtype: str = FLOAT, unit: str = "", *, optional: bool = False) -> Field:
    """Return the field of a single value, 0 at first; an optional one exists if a value is given.

    Parameters
    ----------
    name, dtype, unit, optional : str
        As of `Field`.

    Returns
    -------
    Field
        The field.
    """
    return Field(name, NUMBER, (), dtype, unit, optional=optional)


def part(name: str, inner: Layout) -> Field:
    """Return the field of another record within this one; None if it is absent.

    Parameters
    ----------
    name : str
        Name of the field.
    inner : Layout
        Layout of the record.

    Returns
    -------
    Field
        The field.
    """
    return Field(name, PART, inner=inner)


class Layout:
    """Named list of fields; see the module.

    Parameters
    ----------
    name : str
        Name of the layout.
    *fields : Field
        The fields.

    Raises
    ------
    TypeError
        If a field has the name of a record's attribute.

    Examples
    --------
    >>> layout = Layout("Work", scratch("s", "n"), number("gain"))
    >>> record = layout.make({"gain": 2.0}, {"n": 3})
    >>> record.s.shape, record.gain
    ((3,), 2.0)
    """

    def __init__(self, name: str, *fields: Field) -> None:
        reserved_names = {*vars(Record), *Record.__annotations__, "layout", "sizes", "record_words"}
        used = [field.name for field in fields if field.name in reserved_names and field.kind != WHOLE]
        if used:
            raise TypeError(
                f"{name}: expected other names for the fields {', '.join(used)}: class Record has attributes of "
                "these names"
            )
        self.name, self.fields = name, fields

    def make(
        self,
        values: Mapping[str, Any],
        sizes: Mapping[str, int] | None = None,
        *,
        memory: Array | None = None,
        dtype: Any = float,
    ) -> Record:
        """Return a record with its arrays.

        Parameters
        ----------
        values : Mapping[str, Any]
            Values of fields by name: all arrays of the model, numbers, and any other existing array. For a part a
            mapping of the same kind, a record with a shared model, or None.
        sizes : Mapping[str, int] | None, optional
            Sizes that no given array has.
        memory : Array | None, optional
            Memory of the state, for a record that replaces another; None: new.
        dtype : Any, default float
            complex: scratch and state are complex, for derivatives by a complex step, and there is no `memory`.

        Returns
        -------
        Record
            The record.

        Raises
        ------
        TypeError
            If an array does not fit; it names the field. It is a mistake of a program, not of its user.
        """
        known = dict(sizes or {})
        values = self._open(values, known)
        self._measure(values, known)
        size = _state_words(self, values, known)
        known["memory"] = size
        packed = dtype is float
        if memory is None:
            memory = aligned(size if packed else 0)
        elif memory.shape != (size,):
            raise TypeError(f"{self.name}: memory: expected shape ({size},), got {memory.shape}")
        return Record(self, values, known, memory, _Cursor(), dtype)

    def type(self, *absent: str) -> RecordType:
        """Return the type of such a record in compiled code.

        Parameters
        ----------
        *absent : str
            Absent parts, as 'tree.ground'.

        Returns
        -------
        RecordType
            The type.
        """
        described: list[tuple[Any, ...]] = []
        for field in self.fields:
            if field.name in absent:
                described.append((field.name, PART, None, ()))
            elif field.inner is None:
                described.append((field.name, field.kind, field.dtype, _fixed(field.shape)))
            else:
                inner = tuple(name.partition(".")[2] for name in absent if name.startswith(field.name + "."))
                described.append((field.name, PART, field.inner.type(*inner), ()))
        return RecordType(self.name, tuple(described))

    def at(self, *groups: tuple[str, ...]) -> Any:
        """Return an intrinsic f(address, (one, ...)) for a record of this layout at an address (int64).

        Parameters
        ----------
        *groups : tuple[str, ...]
            Groups of optional fields. The intrinsic has a word for each group, or None if it is absent.

        Returns
        -------
        Any
            The intrinsic.
        """

        @intrinsic
        def record_at(typing_context: Any, address: Any, values: Any) -> Any:
            pairs = zip(groups, values.types, strict=True)
            absent = [name for names, kind in pairs if kind == types.none for name in names]
            kind = self.type(*absent)

            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

            return kind(address, values), generate

        return record_at

    def _open(self, values: Mapping[str, Any], sizes: dict[str, int]) -> dict[str, Any]:
        """Return values with records of parts as mappings, and copy their sizes."""
        opened = dict(values)
        for field in self.fields:
            value = opened.get(field.name)
            if isinstance(value, Record):
                opened[field.name] = value.shared()
                sizes.update({name: size for name, size in value.sizes.items() if name not in sizes})
            elif field.inner is not None and value is not None:
                opened[field.name] = field.inner._open(value, sizes)
        return opened

    def _measure(self, values: Mapping[str, Any], sizes: dict[str, int]) -> None:
        """Store the sizes of the given arrays."""
        for field in self.fields:
            value = values.get(field.name)
            if field.kind == PART and value is not None:
                assert field.inner is not None
                field.inner._measure(value, sizes)
            elif field.kind not in (PART, NUMBER, VIEW) and value is not None:
                if value.ndim != len(field.shape):
                    raise TypeError(f"{self.name}.{field.name}: expected shape {field.shape}, got shape {value.shape}")
                for dimension, size in zip(field.shape, value.shape, strict=True):
                    if isinstance(dimension, str) and dimension.isidentifier():
                        sizes.setdefault(dimension, size)


class _Cursor:
    """Position in the state's memory up to which it is assigned."""

    at = 0


class Record:
    """Arrays of a layout by name, and their addresses for compiled code.

    Further attributes are the fields: arrays, numbers, records of parts, None for absent parts. `Layout.make` creates a
    record.

    Parameters
    ----------
    layout : Layout
        The layout.
    values : Mapping[str, Any]
        Values of fields by name.
    sizes : dict[str, int]
        Sizes by name.
    memory : Array
        (k,) all of its state, parts included.
    cursor : _Cursor
        Position in the memory.
    dtype : Any
        float or complex.

    Attributes
    ----------
    address : int
        Address of the record.
    """

    address: int
    numba_type: RecordType

    def __init__(
        self, layout: Layout, values: Mapping[str, Any], sizes: dict[str, int], memory: Array, cursor: _Cursor,
        dtype: Any,
    ) -> None:  # fmt: skip
        unknown = set(values) - {field.name for field in layout.fields}
        if unknown:
            raise TypeError(f"{layout.name}: no such field: {', '.join(sorted(unknown))}")
        self.layout, self.sizes, self.memory, self._dtype = layout, sizes, memory, dtype
        self._places: dict[str, int] = {}
        self._arrays: dict[str, int] = {}
        self._kinds = {field.name: field.dtype for field in layout.fields if field.kind == NUMBER}
        addresses: list[int] = []
        described: list[tuple[Any, ...]] = []
        single: list[tuple[Field, int]] = []
        first = cursor.at
        for field in layout.fields:
            value = values.get(field.name)
            if field.kind == PART:
                assert field.inner is not None
                inner = None if value is None else Record(field.inner, value, sizes, memory, cursor, dtype)
                setattr(self, field.name, inner)
                described.append((field.name, PART, None if inner is None else inner.numba_type, ()))
                addresses += [] if inner is None else [inner.address]
            elif value is None and field.optional:
                setattr(self, field.name, None)
                described.append((field.name, PART, None, ()))
            elif field.kind == NUMBER:
                single.append((field, len(addresses)))
                described.append((field.name, NUMBER, field.dtype, ()))
                addresses.append(0)
            else:
                array = self._array(field, value, cursor)
                setattr(self, field.name, array)
                described.append((field.name, field.kind, _code(array), _fixed(field.shape)))
                self._arrays[field.name] = len(addresses)
                named = (size for dim, size in zip(field.shape, array.shape, strict=True) if isinstance(dim, str))
                addresses += [array.ctypes.data, *named]
        self.record_words = np.array(addresses, dtype=np.int64)
        self._floats = self.record_words.view(np.float64)
        self.address = int(self.record_words.ctypes.data)
        self.numba_type = RecordType(layout.name, tuple(described))
        self._span = slice(first, cursor.at)
        for field, place in single:
            self._places[field.name] = place
            self.put(**{field.name: values.get(field.name, 0)})

    def _array(self, field: Field, value: Any, cursor: _Cursor) -> Array:
        if field.kind == VIEW:
            shown: Array = getattr(self, field.of)
            return shown.reshape([_size(dimension, self.sizes) for dimension in field.shape])
        if value is None and field.kind == MODEL:
            raise TypeError(f"{self.layout.name}.{field.name}: expected an array of the model, got none")
        shape = tuple(_size(dimension, self.sizes) for dimension in field.shape)
        complex_ = self._dtype is complex
        if field.kind == WHOLE:
            return aligned(*shape) if complex_ else self.memory
        if field.kind == STATE and not complex_:
            count = math.prod(shape)
            place = self.memory[cursor.at : cursor.at + count]
            cursor.at += count
            if field.dtype == INTEGER:
                place = place.view(np.int64)
            place = place.reshape(shape)
            if value is not None:
                place[...] = value
            return place
        if value is None:
            kind: Any = complex if complex_ and field.dtype == FLOAT else np.dtype(field.dtype)
            built = aligned(*shape, dtype=kind)
            built[...] = field.fill
            return built
        array: Array = value
        if array.shape != shape or not array.flags.c_contiguous or _code(array) not in _accepted(field):
            raise TypeError(
                f"{self.layout.name}.{field.name}: expected {field.dtype} {shape}, contiguous, got {array.dtype} "
                f"{array.shape}, strides {array.strides}"
            )
        return array

    def __getattr__(self, name: str) -> Any:
        """Return a number of the record."""
        places: dict[str, int] = self.__dict__.get("_places", {})
        if name not in places:
            raise AttributeError(name)
        return self._number(name)

    def _number(self, name: str) -> float | int | bool:
        """Return a single number from the record, even if plain Python has an object in its place."""
        dtype, place = self._kinds[name], self._places[name]
        if dtype == FLOAT:
            return float(self._floats[place])
        value = int(self.record_words[place])
        return bool(value) if dtype == FLAG else value

    def put(self, **numbers: float) -> None:
        """Set single numbers.

        Parameters
        ----------
        **numbers : float
            Values by name.
        """
        for name, value in numbers.items():
            where = self._floats if self._kinds[name] == FLOAT else self.record_words
            where[self._places[name]] = value

    def cell(self, name: str) -> npt.NDArray[np.float64]:
        """Return a view of a number, FLOAT, for code that sets it at every step.

        Parameters
        ----------
        name : str
            Name of the field.

        Returns
        -------
        npt.NDArray[np.float64]
            (1,) array.
        """
        place = self._places[name]
        return self._floats[place : place + 1]

    def adopt(self, values: Mapping[str, Any]) -> None:
        """Replace arrays of the model, and numbers, from the next call of a kernel on.

        The earlier arrays are unchanged, for forks that use them.

        Parameters
        ----------
        values : Mapping[str, Any]
            New values by name; of a part a record or a mapping.

        Raises
        ------
        TypeError
            If an array is not of the model, or has another shape.
        """
        for name, value in values.items():
            field = next(field for field in self.layout.fields if field.name == name)
            if value is None:
                continue
            if field.kind == PART:
                getattr(self, name).adopt(value.shared() if isinstance(value, Record) else value)
            elif field.kind == NUMBER:
                self.put(**{name: value})
            elif field.kind != MODEL or value.shape != getattr(self, name).shape:
                raise TypeError(
                    f"{self.layout.name}.{name}: expected an array of the model (kind {MODEL}) of shape "
                    f"{getattr(self, name).shape}, got kind {field.kind} and shape {value.shape}"
                )
            else:
                setattr(self, name, self._array(field, value, _Cursor()))
                self.record_words[self._arrays[name]] = value.ctypes.data

    def model_bytes(self) -> bytes:
        """Return the numbers and the model's arrays as bytes, in their order, which distinguish a record from others.

        Returns
        -------
        bytes
            The bytes.
        """
        parts: list[bytes] = []
        for field in self.layout.fields:
            value = getattr(self, field.name)
            if field.kind == PART:
                parts.append(b"" if value is None else value.model_bytes())
            elif field.kind == MODEL and value is not None:
                parts.append(value.tobytes())
            elif field.kind == NUMBER and value is not None:
                place = self._places[field.name]
                parts.append(self.record_words[place : place + 1].tobytes())
        return b"".join(parts)

    def fork(self, memory: Array | None = None) -> Record:
        """Return another record of the same model for a parallel run.

        State, scratch and given arrays are its own. The state and the numbers have the present values.

        Parameters
        ----------
        memory : Array | None, optional
            Memory of its state; None: an array of its own.

        Returns
        -------
        Record
            The record.
        """
        other = self.layout.make(self.shared(), self.sizes, memory=memory)
        other.memory[:] = self.memory[self._span]
        return other

    def adopt_from(self, source: Record) -> bool:
        """Copy model, numbers and given arrays of another record; state and scratch remain.

        Parameters
        ----------
        source : Record
            The other record.

        Returns
        -------
        bool
            False, and nothing is changed, if the other has another layout or size.
        """
        if self.numba_type.name != source.numba_type.name or self.sizes != source.sizes:
            return False
        for field in self.layout.fields:
            if field.kind == MODEL:
                array = getattr(source, field.name)
                if array is not None and array is not getattr(self, field.name):
                    setattr(self, field.name, array)
                    self.record_words[self._arrays[field.name]] = source.record_words[source._arrays[field.name]]
            elif field.kind == INPUT:
                getattr(self, field.name)[...] = getattr(source, field.name)
            elif field.kind == PART and getattr(self, field.name) is not None:
                getattr(self, field.name).adopt_from(getattr(source, field.name))
        for place in self._places.values():
            self.record_words[place] = source.record_words[place]
        return True

    def shared(self) -> dict[str, Any]:
        """Return the values with which `make` creates a record of the same model.

        Returns
        -------
        dict[str, Any]
            Values by name.
        """
        values: dict[str, Any] = {}
        for field in self.layout.fields:
            value = getattr(self, field.name)
            if field.kind == PART:
                values[field.name] = None if value is None else value.shared()
            elif value is None:
                values[field.name] = None
            elif field.kind == MODEL:
                values[field.name] = value
            elif field.kind == NUMBER:
                values[field.name] = self._number(field.name)
            elif field.kind == INPUT:
                values[field.name] = value.copy()
            elif field.kind == SCRATCH and field.optional:
                values[field.name] = aligned(*value.shape, dtype=value.dtype)
        return values

    def as_complex(self, **values: Any) -> Record:
        """Return a record of the same model for derivatives by a complex step.

        Parameters
        ----------
        **values : Any
            Values of fields, in place of those of `shared`.

        Returns
        -------
        Record
            The record.
        """
        return self.layout.make({**self.shared(), **values}, self.sizes, dtype=complex)

    def clear(self) -> None:
        """Reset scratch as in a new record, parts included, so that no invalid values remain."""
        for field in self.layout.fields:
            if field.kind not in (SCRATCH, PART):
                continue
            value = getattr(self, field.name)
            if field.kind == SCRATCH and value is not None:
                value.fill(field.fill)
            elif field.kind == PART and value is not None:
                value.clear()

    def state_views(self, memory: Array | None = None, prefix: str = "") -> dict[str, Array]:
        """Return the state's arrays as views of a vector in the layout of `memory`.

        Parameters
        ----------
        memory : Array | None, optional
            The vector; None: the record's own.
        prefix : str, default ''
            First part of the names.

        Returns
        -------
        dict[str, Array]
            Arrays by dotted name.
        """
        return dict(self._views(self.memory if memory is None else memory, prefix, _Cursor()))

    def _views(self, memory: Array, prefix: str, cursor: _Cursor) -> Iterator[tuple[str, Array]]:
        for field in self.layout.fields:
            value = getattr(self, field.name)
            if field.kind == STATE:
                view = memory[cursor.at : cursor.at + value.size]
                cursor.at += value.size
                kind = np.int64 if field.dtype == INTEGER else np.float64
                yield prefix + field.name, view.view(kind).reshape(value.shape)
            elif field.kind == PART and value is not None:
                yield from value._views(memory, f"{prefix}{field.name}.", cursor)

    def not_finite(self, memory: Array | None = None) -> str:
        """Return the first array of the state with NaN or infinity.

        Parameters
        ----------
        memory : Array | None, optional
            Vector in the layout of `memory`; None: the record's own.

        Returns
        -------
        str
            Its dotted name; empty if all is finite.
        """
        for name, array in self.state_views(memory).items():
            if array.dtype == np.float64 and not np.all(np.isfinite(array)):
                return name
        return ""


def _fixed(shape: tuple[Dimension, ...]) -> tuple[int | None, ...]:
    return tuple(None if isinstance(dimension, str) else dimension for dimension in shape)


def _size(dimension: Dimension, sizes: Mapping[str, int]) -> int:
    if isinstance(dimension, int):
        return dimension
    return int(eval(_code_of(dimension), {"__builtins__": {}}, dict(sizes)))


@cache
def _code_of(dimension: str) -> Any:
    return compile(dimension, "layout", "eval")  # written in a layout, by nobody else


def _code(array: Array) -> str:
    code = array.dtype.str[1:]
    if code not in _ITEMS:
        raise TypeError(f"expected an array that kernels can read by its address, got {array.dtype}")
    return code


def _accepted(field: Field) -> tuple[str, ...]:
    return (FLOAT, COMPLEX) if field.dtype == FLOAT and field.kind != MODEL else (field.dtype,)


def _state_words(layout: Layout, values: Mapping[str, Any], sizes: Mapping[str, int]) -> int:
    total = 0
    for field in layout.fields:
        if field.kind == STATE:
            total += math.prod(_size(dimension, sizes) for dimension in field.shape)
        elif field.inner is not None and values.get(field.name) is not None:
            total += _state_words(field.inner, values[field.name], sizes)
    return total


# --- in compiled code ------------------------------------------------------------------------------------------------


class RecordType(types.Type):  # type: ignore[misc]
    """Type of a record in compiled code: a pointer to its words.

    Parameters
    ----------
    layout : str
        Name of the layout.
    described : tuple[tuple[Any, ...], ...]
        Name, kind, dtype (or type of a part, or None) and shape of each field; None for sizes that are in the words.
    """

    def __init__(self, layout: str, described: tuple[tuple[Any, ...], ...]) -> None:
        self.described = described
        description = repr([(a, b, c.name if isinstance(c, RecordType) else c, d) for a, b, c, d in described])
        super().__init__(f"{layout}_{hashlib.sha256(description.encode()).hexdigest()[:12]}")

    def at(self) -> Any:
        """Return an intrinsic that takes an address (int64) for such a record.

        Returns
        -------
        Any
            The intrinsic.
        """

        @intrinsic
        def record_at(typing_context: Any, address: Any) -> Any:
            def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

            return self(address), generate

        return record_at

    def find(self, name: str) -> tuple[tuple[Any, ...], int]:
        """Return the line of a field, and its first word.

        Parameters
        ----------
        name : str
            Name of the field.

        Returns
        -------
        tuple[tuple[Any, ...], int]
            The line and the index of the word.

        Raises
        ------
        AttributeError
            If there is no such field.
        """
        word = 0
        for line in self.described:
            if line[0] == name:
                return line, word
            word += 0 if line[1] == PART and line[2] is None else 1 + sum(size is None for size in line[3])
        raise AttributeError(name)


@register_default(RecordType)
class _RecordModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: RecordType) -> None:
        super().__init__(manager, kind, _WORD.as_pointer())


@infer_getattr
class _RecordAttributes(AttributeTemplate):  # type: ignore[misc]
    key = RecordType

    def generic_resolve(self, kind: RecordType, name: str) -> Any:
        """Return the type of an attribute."""
        try:
            (_, what, dtype, shape), _ = kind.find(name)
        except AttributeError:
            return None
        if what == PART:
            return types.none if dtype is None else dtype
        return _ITEMS[dtype] if what == NUMBER else types.Array(_ITEMS[dtype], len(shape), "C")


@lower_getattr_generic(RecordType)
def _read_field(context: Any, builder: Any, kind: RecordType, record: Any, name: str) -> Any:
    (_, what, dtype, shape), word = kind.find(name)

    def load(at: int) -> Any:
        value = builder.load(cgutils.gep_inbounds(builder, record, at))
        # no kernel writes into a record, so that the compiler may keep what it read over stores to arrays
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return value

    if what == PART:
        if dtype is None:
            return context.get_dummy_value()
        return builder.inttoptr(load(word), _WORD.as_pointer())
    if what == NUMBER:
        value = load(word)
        if dtype == FLOAT:
            return builder.bitcast(value, ir.DoubleType())
        return builder.trunc(value, ir.IntType(1)) if dtype == FLAG else value
    array_type = types.Array(_ITEMS[dtype], len(shape), "C")
    item = context.get_data_type(array_type.dtype)
    size = context.get_abi_sizeof(item)
    sizes, at = [], word + 1
    for dimension in shape:
        if dimension is None:
            sizes.append(load(at))
            at += 1
        else:
            sizes.append(context.get_constant(types.intp, dimension))
    strides = [context.get_constant(types.intp, size)]
    for dimension in reversed(sizes[1:]):
        strides.insert(0, builder.mul(strides[0], dimension))
    array = make_array(array_type)(context, builder)
    populate_array(
        array, data=builder.inttoptr(load(word), item.as_pointer()), shape=sizes, strides=strides[: len(shape)],
        itemsize=context.get_constant(types.intp, size), meminfo=None,
    )  # fmt: skip
    return array._getvalue()


@intrinsic
def address_of(typing_context: Any, record: Any) -> Any:
    """Return the address (int64) of a record.

    Parameters
    ----------
    typing_context : Any
        Context of numba.
    record : Any
        The record.

    Returns
    -------
    tuple
        Signature and code generator, as an intrinsic returns them.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(args[0], _WORD)

    return types.int64(record), generate


@typeof_impl.register(Record)
def _type_of_record(value: Record, context: Any) -> RecordType:
    return value.numba_type


@unbox(RecordType)
def _unbox_record(kind: RecordType, value: Any, c: Any) -> NativeValue:
    """Pass a record from Python as its address."""
    address = c.pyapi.object_getattr_string(value, "address")
    word = c.pyapi.long_as_longlong(address)
    c.pyapi.decref(address)
    failed = cgutils.is_not_null(c.builder, c.pyapi.err_occurred())
    return NativeValue(c.builder.inttoptr(word, _WORD.as_pointer()), is_error=failed)
