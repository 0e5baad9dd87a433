"""Run the scripts of the gallery, and again only when something that they read has changed.

``gallery/figures/NAME.py`` writes to ``build/gallery/NAME/``, from where the hook of MkDocs takes
pictures and pieces of pages. What a script reads: itself, what the scripts share, the package, the
committed results of the paper of the same name, and the numbers that the paper prints.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = "common.py"
STAMP = "made_from"


def draw_all(root: Path = ROOT) -> dict[str, Path]:
    """Run what is out of date; return every file that the scripts made, as ``NAME/file``."""
    made: dict[str, Path] = {}
    for script in sorted((root / "docs" / "gallery" / "figures").glob("*.py")):
        if script.name != SHARED:
            folder = root / "build" / "gallery" / script.stem
            draw(script, folder, root)
            files = (path for path in sorted(folder.iterdir()) if path.name != STAMP)
            made |= {f"{script.stem}/{path.name}": path for path in files}
    return made


def draw(script: Path, folder: Path, root: Path) -> bool:
    """Run one script unless its files are up to date; return whether it was run."""
    wanted, stamp = digest(inputs(script, root), root), folder / STAMP
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return False
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    own = {"PYTHONPATH": str(root / "src"), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, str(script), str(folder)], check=True, env=os.environ | own)
    stamp.write_text(wanted, encoding="utf-8")
    return True


def inputs(script: Path, root: Path) -> list[Path]:
    """Every file that a script's output depends on."""
    papers = root / "papers"
    results = papers / "experiments" / script.stem / "results.csv"
    published = papers / "src" / "onefit_papers" / "published" / f"{script.stem}.csv"
    found = [script, script.with_name(SHARED), *(root / "src").rglob("*.py"), results, published]
    return sorted(path for path in found if path.is_file())


def digest(paths: list[Path], root: Path) -> str:
    """One number for names and contents."""
    total = hashlib.sha256()
    for path in paths:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    return total.hexdigest()
