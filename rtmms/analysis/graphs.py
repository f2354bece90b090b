"""Arithmetic as graphs: recorded by running a function on nodes, differentiated, and written as vector code.

    x, y = load(0, 0), load(0, 16)
    code = Code([(slope(x * y, [x])[0], 1, 0)])

Equal nodes are one, and terms that are zero are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from llvmlite import binding, ir

WIDTH = 8 if binding.get_host_cpu_features().get("avx512f") else 4
"""Lanes that are computed at once: a vector of the processor."""
FLAGS = ("contract", "nsz")

Value = Any
"""A Node or a number."""


class Node:
    """One operation on others.

    Attributes
    ----------
    graph : list of Node
        All nodes, in an order in which they can be computed.
    known : dict
        Nodes by operation and operands.
    operation : str
        Name of the operation.
    operands : tuple
        Nodes or numbers.
    place : int
        Index in the graph.
    """

    __slots__ = ("operands", "operation", "place")
    graph: ClassVar[list[Node]] = []
    known: ClassVar[dict[Any, Node]] = {}
    operation: str
    operands: tuple[Any, ...]
    place: int

    def __new__(cls, operation: str, *operands: Any) -> Node:
        """Return the node of these operands, an old one where it exists."""
        key = (operation, *(o.place if isinstance(o, Node) else ("number", o) for o in operands))
        if key not in cls.known:
            built = super().__new__(cls)
            built.operation, built.operands, built.place = operation, operands, len(cls.graph)
            cls.graph.append(built)
            cls.known[key] = built
        return cls.known[key]

    def __add__(self, other: Value) -> Value:
        """Return self + other."""
        return add(self, other)

    def __sub__(self, other: Value) -> Value:
        """Return self - other."""
        return subtract(self, other)

    def __mul__(self, other: Value) -> Value:
        """Return self * other."""
        return multiply(self, other)

    def __truediv__(self, other: Value) -> Value:
        """Return self / other."""
        return Node("divide", self, other)

    def __radd__(self, other: Value) -> Value:
        """Return other + self."""
        return add(other, self)

    def __rsub__(self, other: Value) -> Value:
        """Return other - self."""
        return subtract(other, self)

    def __rmul__(self, other: Value) -> Value:
        """Return other * self."""
        return multiply(other, self)

    def __rtruediv__(self, other: Value) -> Value:
        """Return other / self."""
        return Node("divide", other, self)

    def __neg__(self) -> Value:
        """Return -self."""
        return negative(self)

    def __abs__(self) -> Value:
        """Return abs(self)."""
        return Node("abs", self)

    def __gt__(self, other: Value) -> bool:
        """Return True: checks of a recorded function hold, as its caller has made sure."""
        return True

    @property
    def real(self) -> Node:
        """The node itself, as all nodes are real."""
        return self


def start() -> None:
    """Start a new graph."""
    Node.graph, Node.known = [], {}


def load(array: int, offset: int) -> Node:
    """Return a number of each lane, from an offset of an array on.

    Parameters
    ----------
    array : int
        Index of the array.
    offset : int
        Offset of the first lane.

    Returns
    -------
    Node
        The node.
    """
    return Node("load", array, offset)


def same(array: int, offset: int) -> Node:
    """Return one number for all lanes.

    Parameters
    ----------
    array : int
        Index of the array.
    offset : int
        Offset of the number.

    Returns
    -------
    Node
        The node.
    """
    return Node("same", array, offset)


def is_zero(value: Value) -> bool:
    """Return whether a value is the number 0.

    Parameters
    ----------
    value : Value
        Node or number.

    Returns
    -------
    bool
        False for every node.
    """
    return not isinstance(value, Node) and value == 0


def add(a: Value, b: Value) -> Value:
    """Return a + b, without a node where one of them is 0.

    Parameters
    ----------
    a, b : Value
        Nodes or numbers.

    Returns
    -------
    Value
        Node or number.
    """
    if not isinstance(a, Node) and not isinstance(b, Node):
        return a + b
    if is_zero(a) or is_zero(b):
        return b if is_zero(a) else a
    for item, other in ((a, b), (b, a)):
        if isinstance(item, Node) and item.operation == "negative":
            return subtract(other, item.operands[0])
    return Node("add", a, b)


def subtract(a: Value, b: Value) -> Value:
    """Return a - b, without a node where one of them is 0.

    Parameters
    ----------
    a, b : Value
        Nodes or numbers.

    Returns
    -------
    Value
        Node or number.
    """
    if not isinstance(a, Node) and not isinstance(b, Node):
        return a - b
    if is_zero(b):
        return a
    if is_zero(a):
        return negative(b)
    return add(a, b.operands[0]) if isinstance(b, Node) and b.operation == "negative" else Node("subtract", a, b)


def multiply(a: Value, b: Value) -> Value:
    """Return a b, without a node where one of them is 0, 1 or -1.

    Parameters
    ----------
    a, b : Value
        Nodes or numbers.

    Returns
    -------
    Value
        Node or number.
    """
    if not isinstance(a, Node) and not isinstance(b, Node):
        return a * b
    for item, other in ((a, b), (b, a)):
        if not isinstance(item, Node):
            if item in (0, 1, -1):
                return 0.0 if item == 0 else other if item == 1 else negative(other)
        elif item.operation == "negative":
            return negative(multiply(item.operands[0], other))
    return Node("multiply", a, b)


def negative(a: Value) -> Value:
    """Return -a.

    Parameters
    ----------
    a : Value
        Node or number.

    Returns
    -------
    Value
        Node or number.
    """
    if not isinstance(a, Node):
        return -a
    return a.operands[0] if a.operation == "negative" else Node("negative", a)


def sine_cosine(a: Value) -> tuple[Value, Value]:
    """Return sine and cosine of a node; a number counts as 0.

    Parameters
    ----------
    a : Value
        Node, rad.

    Returns
    -------
    tuple[Value, Value]
        Sine and cosine.
    """
    return (Node("sine", a), Node("cosine", a)) if isinstance(a, Node) else (0.0, 1.0)


def square_root(a: Value) -> Value:
    """Return the square root.

    Parameters
    ----------
    a : Value
        Node or number.

    Returns
    -------
    Value
        Node or number.
    """
    return Node("root", a) if isinstance(a, Node) else math.sqrt(a)


def slopes(values: Sequence[Value], by: Node, end: int) -> list[Value]:
    """Return derivatives of values by a node, by forward accumulation through the first `end` nodes.

    Parameters
    ----------
    values : Sequence[Value]
        Nodes or numbers.
    by : Node
        Node of the variable.
    end : int
        Nodes that count.

    Returns
    -------
    list[Value]
        A derivative of each value.
    """
    result: dict[int, Value] = {by.place: 1.0}
    for node in Node.graph[by.place + 1 : end]:
        if node.operation in ("load", "same", "sign"):
            continue
        moved = [result.get(o.place, 0.0) if isinstance(o, Node) else 0.0 for o in node.operands]
        if all(is_zero(item) for item in moved):
            continue
        slope = _slope(node, moved)
        if not is_zero(slope):
            result[node.place] = slope
    return [result.get(value.place, 0.0) if isinstance(value, Node) else 0.0 for value in values]


def _slope(node: Node, moved: list[Value]) -> Value:
    a, d = node.operands, moved
    match node.operation:
        case "add":
            return add(d[0], d[1])
        case "subtract":
            return subtract(d[0], d[1])
        case "multiply":
            return add(multiply(d[0], a[1]), multiply(a[0], d[1]))
        case "divide":
            return multiply(subtract(d[0], multiply(node, d[1])), Node("divide", 1.0, a[1]))
        case "negative":
            return negative(d[0])
        case "abs":
            return multiply(Node("sign", a[0]), d[0])
        case "root":
            return multiply(Node("divide", 0.5, node), d[0])
        case "sine":
            return multiply(Node("cosine", a[0]), d[0])
        case "cosine":
            return negative(multiply(Node("sine", a[0]), d[0]))
    raise ValueError(node.operation)


class Output(NamedTuple):
    """Destination of a value: an offset of an array, with a number of each lane.

    Attributes
    ----------
    value : Value
        Node or number.
    array : int
        Index of the array.
    offset : int
        Offset of the first lane.
    added : bool, default False
        Added to the old number, or in its place.
    """

    value: Value
    array: int
    offset: int
    added: bool = False


def write(
    builder: Any, addresses: Sequence[Any], lanes: int, outputs: Sequence[Output], width: int = WIDTH
) -> None:  # fmt: skip
    """Write a loop over lanes that computes the outputs of the present graph, into the function that is being built.

    Parameters
    ----------
    builder : Any
        Builder of LLVM code.
    addresses : Sequence[Any]
        Addresses of the arrays.
    lanes : int
        Number of lanes.
    outputs : Sequence[Output]
        Values to compute.
    width : int, optional
        Lanes at once.
    """
    graph, word = Node.graph, ir.IntType(64)
    needed, stack = set(), [o.value.place for o in outputs if isinstance(o.value, Node)]
    while stack:
        place = stack.pop()
        if place not in needed:
            needed.add(place)
            stack += [o.place for o in graph[place].operands if isinstance(o, Node)]
    begin, loop, end = builder.block, builder.append_basic_block("lanes"), builder.append_basic_block("lanes.end")
    builder.branch(loop)
    builder.position_at_end(loop)
    lane = builder.phi(word)
    lane.add_incoming(ir.Constant(word, 0), begin)
    shift = builder.shl(lane, ir.Constant(word, 3))
    pen = _GraphPart(builder, addresses, [builder.add(address, shift) for address in addresses], width)
    for place in sorted(needed):
        pen.write(graph[place])
    for value, array, offset, added in outputs:
        there = pen.at(pen.shifted[array], offset, pen.vector)
        result = pen.value(value)
        if added:
            result = pen.plus(builder.load(there, align=8), result)
        builder.store(result, there, align=8)
    following = builder.add(lane, ir.Constant(word, width))
    lane.add_incoming(following, builder.block)
    builder.cbranch(builder.icmp_signed("<", following, ir.Constant(word, lanes)), loop, end)
    builder.position_at_end(end)


NUMBER = ir.DoubleType()


class _GraphPart:
    """Written part of a graph."""

    def __init__(self, builder: Any, addresses: Sequence[Any], shifted: Sequence[Any], width: int) -> None:
        self.builder, self.addresses, self.shifted = builder, addresses, shifted
        self.width, self.vector = width, ir.VectorType(NUMBER, width)
        self.node_values: dict[int, Any] = {}
        self.turns: dict[int, tuple[Any, Any]] = {}

    def at(self, address: Any, offset: int, kind: Any) -> Any:
        there = self.builder.add(address, ir.Constant(ir.IntType(64), 8 * offset))
        return self.builder.inttoptr(there, kind.as_pointer())

    def all(self, value: float) -> Any:
        return ir.Constant(self.vector, [float(value)] * self.width)

    def value(self, value: Value) -> Any:
        return self.node_values[value.place] if isinstance(value, Node) else self.all(value)

    def plus(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b, flags=FLAGS)

    def times(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(a, b, flags=FLAGS)

    def write(self, node: Node) -> None:
        b, a = self.builder, node.operands
        match node.operation:
            case "load":
                built = b.load(self.at(self.shifted[a[0]], a[1], self.vector), align=8)
            case "same":
                item = b.load(self.at(self.addresses[a[0]], a[1], NUMBER))
                nothing, lanes = ir.Constant(self.vector, ir.Undefined), ir.VectorType(ir.IntType(32), self.width)
                item = b.insert_element(nothing, item, ir.Constant(ir.IntType(32), 0))
                built = b.shuffle_vector(item, nothing, ir.Constant(lanes, [0] * self.width))
            case "add":
                built = self.plus(self.value(a[0]), self.value(a[1]))
            case "subtract":
                built = b.fsub(self.value(a[0]), self.value(a[1]), flags=FLAGS)
            case "multiply":
                built = self.times(self.value(a[0]), self.value(a[1]))
            case "divide":
                built = b.fdiv(self.value(a[0]), self.value(a[1]), flags=FLAGS)
            case "negative":
                built = b.fsub(self.all(-0.0), self.value(a[0]), flags=FLAGS)
            case "root":
                root, built = b.module.declare_intrinsic("llvm.sqrt", [NUMBER]), ir.Constant(self.vector, ir.Undefined)
                for lane in (ir.Constant(ir.IntType(32), k) for k in range(self.width)):
                    built = b.insert_element(built, b.call(root, [b.extract_element(self.value(a[0]), lane)]), lane)
            case "abs":
                x = self.value(a[0])
                built = b.select(b.fcmp_ordered("<", x, self.all(0.0)), b.fsub(self.all(-0.0), x, flags=FLAGS), x)
            case "sign":
                x = self.value(a[0])
                up = b.select(b.fcmp_ordered(">", x, self.all(0.0)), self.all(1.0), self.all(0.0))
                built = b.select(b.fcmp_ordered("<", x, self.all(0.0)), self.all(-1.0), up)
            case _:
                built = self.turn(a[0])[node.operation == "cosine"]
        self.node_values[node.place] = built

    def turn(self, angle: Node) -> tuple[Any, Any]:
        """Write sine and cosine, by the series of rtmms.robots.manta.fin_link."""
        if angle.place not in self.turns:
            z = self.times(self.all(0.25), self.value(angle))
            w = self.times(z, z)
            s = self._series(w, SINES)
            c = self._series(w, COSINES)
            s = self.times(z, s)
            two = self.all(2.0)
            for _ in range(2):
                turned = self.times(two, self.times(s, s))
                s, c = self.times(two, self.times(s, c)), self.builder.fsub(self.all(1.0), turned, flags=FLAGS)
            self.turns[angle.place] = s, c
        return self.turns[angle.place]

    def _series(self, w: Any, factors: Sequence[float]) -> Any:
        total = self.all(factors[0])
        for factor in factors[1:]:
            total = self.plus(self.all(factor), self.times(w, total))
        return total


SINES = (
    -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0, 1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0,
    -1.0 / 6.0, 1.0,
)  # fmt: skip
COSINES = (
    1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0, -1.0 / 3628800.0, 1.0 / 40320.0, -1.0 / 720.0,
    1.0 / 24.0, -0.5, 1.0,
)  # fmt: skip
"""Coefficients of sine and cosine of a quarter of an angle, from the highest power of its square down."""
