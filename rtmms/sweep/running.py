"""The chunks of a study on processes of this machine, or on the workers of a Dask cluster."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rtmms.base.errors import ModelError, RtmmsError, UnknownNameError
from rtmms.base.install import install_command
from rtmms.base.processes import process_pool
from rtmms.base.toml_file import read_toml
from rtmms.base.trust import asked_by_process, permitted_files
from rtmms.sweep.case import Runner
from rtmms.sweep.inputs import input_files, opened_files, refuse_changed, refuse_stale_modules
from rtmms.sweep.study import Study
from rtmms.sweep.table import Parts, rows_table
from rtmms.version import VERSION

if TYPE_CHECKING:
    from rtmms.sweep.rows import Form, Table

Done = Callable[[int], None]
Chunk = tuple[int, int]

_runner: Runner | None = None
_cases: list[tuple[Any, ...]] = []
_opened: dict[str, str] = {}


def probe(study: Study) -> tuple[Study, dict[str, str]]:
    """Take a few steps of a study's first run, which also compiles.

    Returns
    -------
    tuple
        The study with the hashes of the files that decide its rows, and the columns of its table with their units.
    """
    named, opened = input_files(study, {}), dict[str, str]()
    with opened_files(opened):
        units = Runner(study).columns()
    refuse_stale_modules()
    return replace(study, inputs={**input_files((), opened), **named}), units


def take(study: Study, form: Form, chunk: Chunk) -> tuple[Table, dict[str, str]]:
    """The runs of one chunk, in any process: nothing but the arguments and the study's files decides the result.

    Returns
    -------
    tuple
        The rows, and the hashes of the files beyond the study's that were opened.

    Raises
    ------
    RtmmsError
        A file of the study has another content than it has in the study's key.
    """
    global _runner, _cases
    refuse_changed(study.inputs)
    refuse_stale_modules()
    if _runner is None or _runner.study != study:
        _runner, _cases = Runner(study), study.cases()
        _opened.clear()
    cases = _cases[chunk[0] : chunk[1]]
    with opened_files(_opened):
        rows = [_runner.row(case) for case in cases]
    more = {name: one for name, one in input_files((), _opened).items() if name not in study.inputs}
    refuse_changed({**study.inputs, **more})
    refuse_stale_modules()
    return rows_table(study, form, chunk[0], cases, rows), more


def on_processes(study: Study, form: Form, parts: Parts, left: list[Chunk], workers: int, done: Done) -> None:
    """All that is left, on so many processes; done receives the runs of each chunk. The kernels are compiled already.

    RtmmsError where a worker ended before its work."""
    if workers == 1 or len(left) == 1:
        for chunk in left:
            parts.write(chunk, *take(study, form, chunk))
            done(chunk[1] - chunk[0])
        return
    with process_pool(min(workers, len(left)), {"RTMMS_QUIET": "1"}) as pool:
        going = {pool.submit(take, study, form, chunk): chunk for chunk in left}
        while going:
            for one in wait(going, return_when=FIRST_COMPLETED).done:
                chunk = going.pop(one)
                try:
                    parts.write(chunk, *one.result())
                except BrokenExecutor:
                    raise RtmmsError(
                        "a worker was ended from outside, or had no memory left; run the same command again: it goes "
                        "on from the parts that are there (--threads starts fewer workers)"
                    ) from None
                done(chunk[1] - chunk[0])


def _on_workers(client: Any, function: Any, *given: Any) -> dict[str, Any]:
    """What each worker makes of it; one that is lost meanwhile is left out, what it had to do falls to the others."""
    found = client.run(function, *given, on_error="return")
    for fault in found.values():
        if isinstance(fault, Exception) and not isinstance(fault, OSError):
            raise fault
    return {worker: one for worker, one in found.items() if not isinstance(one, OSError)}


@dataclass(frozen=True)
class Cluster:
    """A Dask cluster.

    Parameters
    ----------
    address
        Of its scheduler, for example `tls://host:8786`.
    security
        Files `ca`, `cert` and `key` of TLS; empty for a cluster without.
    """

    address: str
    security: Mapping[str, str] = field(default_factory=dict)


TLS = {"ca": "tls_ca_file", "cert": "tls_client_cert", "key": "tls_client_key"}
"""Keys of a security file, and what Dask calls them."""


def read_cluster(address: str, security: Path | None) -> Cluster:
    """Read the words of --dask and --dask-security. Files are beside the security file.

    Raises
    ------
    ModelError
        TLS without a security file or the reverse, a key that is missing or unknown, or a file that is not there.
    """
    secure = address.startswith("tls://")
    if security is None:
        if secure:
            raise ModelError(f"--dask {address}: expected --dask-security FILE.toml with {', '.join(TLS)} beside it")
        return Cluster(address)
    if not secure:
        raise ModelError(f"--dask {address}: expected tls://HOST:PORT with --dask-security, got another scheme")
    found = read_toml(security)
    for key in found:
        if key not in TLS:
            raise ModelError(f"{security}: {UnknownNameError('key', key, TLS)}")
    files = {}
    for key in TLS:
        if not isinstance(found.get(key), str):
            raise ModelError(f'{security}: {key}: expected the name of a PEM file, as {key} = "{key}.pem"')
        file = security.expanduser().parent / Path(found[key]).expanduser()
        if not file.is_file():
            raise ModelError(f"{security}: {key}: there is no file '{file}'")
        files[key] = str(file)
    return Cluster(address, files)


def on_dask(study: Study, form: Form, parts: Parts, left: list[Chunk], cluster: Cluster, done: Done) -> None:
    """The same on a cluster that runs; ModelError where there is none, or where its workers have another rtmms."""
    address = cluster.address
    try:
        from dask.distributed import Client, Security, as_completed
    except ImportError:
        raise ModelError(f"--dask: needs the library dask: {install_command('dask')}") from None
    try:
        keys = {TLS[key]: file for key, file in cluster.security.items()}
        security = Security(require_encryption=True, **keys) if keys else None
        client = Client(address, timeout=10.0, set_as_default=False, security=security)
    except (OSError, ValueError, TypeError) as fault:
        raise ModelError(f"--dask {address}: no scheduler answered within 10 s ({type(fault).__name__})") from None
    with client:
        versions = _on_workers(client, version)
        if not versions:
            raise ModelError(f"--dask {address}: the scheduler has no workers")
        for worker, found in versions.items():
            if found != VERSION:
                raise ModelError(f"--dask {address}: worker {worker} has rtmms {found}, this is {VERSION}")
        permitted = permitted_files()
        _on_workers(client, prepare, permitted, study)
        futures = {
            client.submit(
                take_for, permitted, study, form, chunk, pure=False, retries=3, key=parts.file(chunk).stem
            ): chunk
            for chunk in left
        }
        for future in as_completed(futures, loop=client.loop):
            chunk = futures[future]
            parts.write(chunk, *future.result())
            done(chunk[1] - chunk[0])
            future.release()  # the part is here; a worker that dies loses nothing of it


def version() -> str:
    """Of rtmms where this is called."""
    return VERSION


def prepare(permitted: str | None, study: Study) -> None:
    """Compile, or fetch from the cache, what the study's runs need: once a worker, before the work."""
    os.environ["RTMMS_QUIET"] = "1"
    with asked_by_process(permitted):
        Runner(study).columns()


def take_for(permitted: str | None, study: Study, form: Form, chunk: Chunk) -> tuple[Table, dict[str, str]]:
    """`take`, on a worker that did not inherit which files may run (rtmms.base.trust.permitted_files)."""
    with asked_by_process(permitted):
        return take(study, form, chunk)
