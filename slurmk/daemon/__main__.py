"""``python -m slurmk.daemon``: the controller in the foreground. ``slurmk up`` starts it."""

from __future__ import annotations

import argparse
import asyncio
import errno
import fcntl
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import IO

OCCUPIED = 3
"""Exit code when a controller runs in that directory already."""


def main() -> int:
    """Serve until told to stop; faults at the start are one line on standard error."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until the controller listens to it: die without a word
    parser = argparse.ArgumentParser(prog="slurmk.daemon", allow_abbrev=False)
    parser.add_argument("--dir", type=Path, required=True)
    parser.add_argument("--conf", type=Path)
    parser.add_argument("--nodes", type=int)
    parser.add_argument("--database")
    parser.add_argument("--kubernetes")
    parser.add_argument("--kubeconfig", default="")
    parser.add_argument("--context", default="")
    options = parser.parse_args()
    directory = Path(os.path.abspath(options.dir))
    try:
        prepare(directory)
        lock = take_lock(directory)
    except OSError as error:
        return complain(f"{error.filename or directory}: {error.strerror}")
    if lock is None:
        print(f"slurmk: a controller runs in {directory} already", file=sys.stderr)
        return OCCUPIED
    with lock:
        return serve(directory, options) if options.kubernetes is None else serve_kubernetes(directory, options)


def serve(directory: Path, options: argparse.Namespace) -> int:
    """Read the configuration, open the store, and run."""
    from accounting.store import Store, StoreError
    from bridge.local.interpreter import InterpreterError
    from bridge.local.launcher import LocalLauncher
    from grammar.errors import GrammarError
    from slurmk.daemon.configured import find_site
    from slurmk.daemon.controller import SOCKET, Daemon
    from slurmk.daemon.logs import start_log

    read_site = partial(find_site, options.conf and Path(os.path.abspath(options.conf)), options.nodes)
    try:
        site = read_site()
    except GrammarError as error:
        return complain(str(error))
    except OSError as error:
        return complain(f"{error.filename}: {error.strerror}")
    for text in site.warnings:
        print(f"slurmk: warning: {text}", file=sys.stderr, flush=True)
    if site.unused_keys:
        print(f"slurmk: warning: accepted without effect: {', '.join(site.unused_keys)}", file=sys.stderr, flush=True)
    store = Store(options.database or f"sqlite:///{directory}/state/slurmk.sqlite", site)
    try:
        start_log(directory)
        store.open()
        launcher = LocalLauncher(site, directory, str(directory / SOCKET))
        asyncio.run(Daemon(directory, site, store, launcher, read_site).run())
    except StoreError as error:
        return complain(f"the database cannot be used: {error}")
    except InterpreterError as error:
        return complain(str(error))
    except OSError as error:
        return complain(f"{error.filename or directory}: {error.strerror}")
    return 0


def serve_kubernetes(directory: Path, options: argparse.Namespace) -> int:
    """The same with a Kubernetes cluster's nodes."""
    from slurmk.daemon.kubernetes import Place, Unusable, run

    place = Place(
        directory=directory,
        configuration=options.conf and Path(os.path.abspath(options.conf)),
        settings=Path(os.path.abspath(options.kubernetes)) if options.kubernetes else None,
        kubeconfig=options.kubeconfig,
        context=options.context,
        database=options.database or f"sqlite:///{directory}/state/slurmk.sqlite",
    )
    try:
        return asyncio.run(run(place))
    except Unusable as error:
        return complain(str(error))
    except OSError as error:
        return complain(f"{error.filename or directory}: {error.strerror}")


def prepare(directory: Path) -> None:
    """Make the folders: what others need is open to them, the database (it holds the jobs' secrets) is not."""
    directory.mkdir(parents=True, exist_ok=True)
    if directory.stat().st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "the directory belongs to another user", str(directory))
    directory.chmod(0o755)
    (directory / "state").mkdir(mode=0o700, exist_ok=True)


def take_lock(directory: Path) -> IO[str] | None:
    """Be the only controller of the directory; None when there is another. The file holds our process id. Nobody else may
    open it: whoever can, can lock it."""
    lock = open(directory / "controller.lock", "a+", encoding="ascii", opener=partial(os.open, mode=0o600))  # noqa: SIM115
    os.fchmod(lock.fileno(), 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def complain(text: str) -> int:
    """Say why there is no controller; the exit code."""
    print(f"slurmk: error: {text}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
