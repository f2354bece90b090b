"""Kernels that a second process compiles while the first is at work on the others, with the types that they are called
with: from the end of the first one's way to its middle.

An entry that no longer fits costs time alone: what the plant needs is compiled there when it is not in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba import types

from rtmms.robots.manta.coupling import iterated, monolithic, sequential
from rtmms.robots.manta.coupling.interface import add_to_body, base_acceleration, fin_on_body, fin_on_support
from rtmms.robots.manta.coupling.joints import last_joints, next_joints, start_joints
from rtmms.robots.manta.coupling.layout import (
    FINNED,
    MANTA,
    MANY,
    NORMALS,
    VARYING,
    W_FORCE,
    W_MATRIX,
    W_ROTATION,
    W_TWIST,
    W_WATER,
)
from rtmms.robots.manta.coupling.step import begin, end_body, finish, place_body, sum_body
from rtmms.robots.manta.kernels.body import BODY, body_force
from rtmms.robots.manta.kernels.fin_lanes import accelerate_block, condense_block
from rtmms.robots.manta.kernels.fin_layout import Chains
from rtmms.robots.manta.kernels.fin_sums import collect_sums


def jobs(many: bool, drift: bool, normals: bool) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """(kernel, types of its arguments); whether chains have other than three links, a current that varies, normals."""
    i, f = types.int64, types.float64
    line, cube, four = (types.Array(f, n, "C") for n in (1, 3, 4))
    links = i if many else types.none
    water, across = four if drift else types.none, four if normals else types.none
    there = ((many, MANY), (drift, VARYING), (normals, NORMALS))
    memory = MANTA.type(*(name for is_there, names in there if not is_there for name in names))
    finned, body, at = FINNED.type(), BODY.type(), types.literal
    chains = types.NamedTuple((cube, cube, water, across, line, line, line), Chains)
    yield condense_block, (links, i, i, chains, i, types.UniTuple(f, 4))
    yield accelerate_block, (links, i, i, chains, i)
    yield add_to_body, (i, finned, line, i, line)
    yield monolithic.body_acceleration, (line, at(W_MATRIX), at(W_FORCE), line)
    yield iterated.body_acceleration, (finned, line, line)
    yield sequential.body_acceleration, (finned, line, line)
    yield fin_on_support, (i, line)
    yield fin_on_body, (i, finned, line, i, line)
    yield body_force, (body, line, at(W_ROTATION), at(W_TWIST), at(W_WATER), at(W_FORCE))
    yield collect_sums, (line, line, i, i)
    yield base_acceleration, (i, finned, line, i, line, line)
    yield begin, (finned, memory, line)
    yield next_joints, (finned, memory, i)
    yield place_body, (finned, memory, i)
    yield sum_body, (finned, memory, i)
    yield last_joints, (finned, memory, i)
    yield end_body, (finned, memory)
    yield finish, (finned, body, memory)
    yield start_joints, (memory,)


def compile_ahead(many: bool, drift: bool, normals: bool) -> None:
    """Compile them into the cache."""
    for kernel, arguments in jobs(many, drift, normals):
        kernel.get_call_template(arguments, {})
