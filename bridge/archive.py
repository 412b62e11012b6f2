"""stepd as one file, or as a folder, that any Python 3.8 runs without slurmk being installed."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import slurmk

MAIN = """from slurmk.stepd.__main__ import main
import sys
sys.exit(main(sys.argv[1:]))
"""


def modules() -> Mapping[str, bytes]:
    """What stepd consists of: file names below the archive's root, and their content."""
    root = Path(slurmk.__file__).parent
    found = {"__main__.py": MAIN.encode()}
    for path in (root / "__init__.py", root / "wire.py", *sorted((root / "stepd").glob("*.py"))):
        found[f"slurmk/{path.relative_to(root)}"] = path.read_bytes()
    return found


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
