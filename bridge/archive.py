"""stepd as one file, or as a folder, that any Python 3.8 runs without slurmk being installed."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import slurmk

MAIN = """from slurmk.stepd.__main__ import main
import sys
sys.exit(main(sys.argv[1:]))
"""


MAIN_IN_POD = """import os, sys
library = os.path.join(os.environ.get("SLURMK_RUN", "/slurmk/run"), "lib")
try:
    import zipfile
    with zipfile.ZipFile(sys.path[0]) as archive:
        archive.extractall(library)
except OSError as error:
    sys.exit("slurmk: error: %s: %s" % (error.filename or library, error.strerror))
sys.path.insert(0, library)
from slurmk.stepd.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
"""Unpacks the archive where its modules can be compiled once for all of the pod's processes, and runs it from there."""

CLIENT = ("__init__.py", "shim.py", "remote.py", "unreachable.py")


def modules() -> Mapping[str, bytes]:
    """What stepd consists of: file names below the archive's root, and their content."""
    root = Path(slurmk.__file__).parent
    found = {"__main__.py": MAIN.encode()}
    for path in (root / "__init__.py", root / "wire.py", *sorted((root / "stepd").glob("*.py"))):
        found[f"slurmk/{path.relative_to(root)}"] = path.read_bytes()
    return found


def pod_archive() -> bytes:
    """stepd and the commands' shims as one zipapp for pods; the same bytes for the same modules."""
    root = Path(slurmk.__file__).parent
    found = {**modules(), "__main__.py": MAIN_IN_POD.encode()}
    found.update({f"slurmk/client/{name}": (root / "client" / name).read_bytes() for name in CLIENT})
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in found.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def write_archive(path: Path) -> None:
    """Write ``stepd.pyz``, in one step."""
    temporary = path.with_name(f".{path.name}.new")
    with zipfile.ZipFile(temporary, "w") as archive:
        for name, content in modules().items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    temporary.chmod(0o644)
    temporary.replace(path)


def write_folder(folder: Path) -> None:
    """Write the same as a folder; its modules are compiled only once, so that it starts faster."""
    for name, content in modules().items():
        path = folder / name
        if path.is_file() and path.read_bytes() == content:
            continue
        for parent in reversed((path.parent, *path.parent.parents)):
            if not parent.exists():
                parent.mkdir()
                parent.chmod(0o755)
        temporary = path.with_name(f".{path.name}.new")
        temporary.write_bytes(content)
        temporary.chmod(0o644)
        temporary.replace(path)
