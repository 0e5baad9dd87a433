"""Build the source distribution and the wheel, install each without the checkout, and try it.

``make release-check`` runs this. For both files: a fresh virtual environment in a folder outside
the checkout, the extras ``cli`` and ``report``, the doctests of the installed package, ``onefit
demo``, and the metadata that an index shows. Whatever is wrong ends it with a sentence.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = "cli,report"

#: runs in the fresh environment, in an empty folder; argv[1] is the checkout
CHECK = """
import sys
from importlib import metadata
from importlib.resources import files
from pathlib import Path

import onefit

place = Path(onefit.__file__).resolve()
assert not place.is_relative_to(sys.argv[1]), f"the checkout is imported, not {place}"
about = metadata.metadata("onefit")
assert about["Version"] == onefit.__version__, (about["Version"], onefit.__version__)
assert about["License-Expression"] == "BSD-3-Clause", about["License-Expression"]
assert about["Description-Content-Type"] == "text/markdown"
assert "kernel" in about.get_payload() or "kernel" in (about["Description"] or "")
assert "](docs/" not in (about.get_payload() or about["Description"]), "links that an index breaks"
scripts = {one.name: one.value for one in metadata.entry_points(group="console_scripts")}
assert scripts.get("onefit") == "onefit.cli:main", scripts.get("onefit")
for name in ("py.typed", "__init__.pyi", "report/page.html", "report/page.css", "report/page.js"):
    assert files("onefit").joinpath(name).is_file(), f"{name} is not in the package"
missing = [name for name in onefit.__all__ if not hasattr(onefit, name)]
assert not missing, f"names without an object: {missing}"
print("metadata, files and names are there: onefit", onefit.__version__)
"""


def run(command: Sequence[str | Path], folder: Path) -> None:
    """Run a command in a folder, without a PYTHONPATH that could lead back to the checkout."""
    print("+", *command, flush=True)
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run([str(word) for word in command], cwd=folder, env=environment, check=True)


def make_environment(folder: Path, *packages: str | Path) -> Path:
    """A virtual environment with these packages; its folder of programs."""
    run([sys.executable, "-m", "venv", folder], folder.parent)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    run([programs / "python", "-m", "pip", "install", "--quiet", *packages], folder.parent)
    return programs


def build(folder: Path) -> list[Path]:
    """The source distribution and the wheel, with a readme that an index can show."""
    programs = make_environment(folder / "tools", "build", "twine")
    made = folder / "dist"
    run([programs / "python", "-m", "build", "--outdir", made, ROOT], folder)
    found = sorted(made.iterdir())
    assert [one.suffix for one in found] == [".whl", ".gz"], found
    run([programs / "twine", "check", "--strict", *found], folder)
    return found


def try_out(distribution: Path, folder: Path) -> None:
    """Install one of them and use it."""
    programs = make_environment(folder / "environment", f"{distribution}[{EXTRAS}]", "pytest")
    empty = folder / "empty"
    empty.mkdir()
    python = programs / "python"
    run([python, "-c", CHECK, ROOT], empty)
    run(
        [
            python, "-m", "pytest", "-q", "--doctest-modules", "--doctest-ignore-import-errors",
            "-o", "doctest_optionflags=ELLIPSIS NORMALIZE_WHITESPACE", "--pyargs", "onefit",
        ],
        empty,
    )  # fmt: skip
    run([programs / "onefit", "demo", "--report", "demo.html"], empty)
    assert (empty / "demo.html").stat().st_size > 10_000


def main() -> None:
    flags = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    flags.add_argument("--only", choices=["wheel", "sdist"], help="try only one of the two")
    wanted = flags.parse_args().only
    with tempfile.TemporaryDirectory(prefix="onefit-release-") as name:
        folder = Path(name)
        for distribution in build(folder):
            kind = "wheel" if distribution.suffix == ".whl" else "sdist"
            if wanted in (None, kind):
                print(f"== {distribution.name}", flush=True)
                (folder / kind).mkdir()
                try_out(distribution, folder / kind)
    print("release check passed")


if __name__ == "__main__":
    main()
