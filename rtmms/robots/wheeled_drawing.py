"""What drawings of robots on wheels share: wheels about y, and their colours."""

from __future__ import annotations

from collections.abc import Sequence

from rtmms.plant import drawing as d

DARK, METAL, RUBBER = (28, 30, 34), (168, 174, 182), (40, 42, 46)


def wheels(name: str, radius: float, width: float, places: Sequence[Sequence[float]], frame: str = "") -> list[d.Part]:
    """Return tyres and hubs of wheels about y, at places of their middles."""
    tyres, hubs = ([d.moved(mesh, place) for place in places] for mesh in (d.tyre(radius, width), d.hub(radius, width)))
    return [
        d.Part(f"{name}_tyres", d.merged(*tyres), RUBBER, frame, gloss=0.1),
        d.Part(f"{name}_hubs", d.merged(*hubs), METAL, frame, gloss=0.6),
    ]
