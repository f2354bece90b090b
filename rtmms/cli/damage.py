"""What a log could not give, said where it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rtmms.record.log import Log

MOST = 5


def tell_damage(log: Log) -> None:
    """A line on standard error for each place of the log that cannot be read, MOST of them."""
    for sentence in log.damage[:MOST]:
        click.echo(f"rtmms: {log.path}: {sentence}; what stood there is left out", err=True)
    if len(log.damage) > MOST:
        click.echo(f"rtmms: {log.path}: damaged in {len(log.damage) - MOST} more places", err=True)
