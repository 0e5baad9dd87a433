"""Build the source distribution and a wheel from it, install the wheel elsewhere, and try both.

``make release-check`` runs this. The wheel is installed with the extras ``cli`` and ``report`` into
a fresh environment outside the checkout, which shows that the declared dependencies suffice: there
``onefit demo`` runs, and the tests of the unpacked source distribution that are named in ``TESTS``.
Whatever is wrong ends it with a sentence. ``--all`` runs all tests of the source distribution, by
the interpreter of the checkout, which has their peers (several minutes).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: tests that need the package, its extras and files beside it, but no peer
TESTS = ("tests/test_package.py", "tests/docs/test_findings.py", "tests/cli/test_spreadsheet.py")

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
text = about.get_payload() or about["Description"]
assert about["Version"] == onefit.__version__, (about["Version"], onefit.__version__)
assert about["License-Expression"] == "BSD-3-Clause", about["License-Expression"]
assert about["Description-Content-Type"] == "text/markdown"
assert "kernel" in text, "no readme"
assert "](docs/" not in text, "links that an index breaks"
scripts = {one.name: one.value for one in metadata.entry_points(group="console_scripts")}
assert scripts.get("onefit") == "onefit.cli:main", scripts.get("onefit")
for name in ("py.typed", "__init__.pyi", "report/page.html"):
    assert files("onefit").joinpath(name).is_file(), f"{name} is not in the package"
missing = [name for name in onefit.__all__ if not hasattr(onefit, name)]
assert not missing, f"names without an object: {missing}"
print("metadata, files and names are there: onefit", onefit.__version__)
"""


def run(command: Sequence[str | Path], folder: Path, **variables: str | Path) -> None:
    """Run a command in a folder, without a PYTHONPATH that could lead back to the checkout."""
    print("+", *command, flush=True)
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment = kept | {name: str(value) for name, value in variables.items()}
    subprocess.run([str(word) for word in command], cwd=folder, env=environment, check=True)


def main() -> None:
    flags = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    flags.add_argument("--all", action="store_true", help="run all tests of the sdist")
    every, begun = flags.parse_args().all, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="onefit-release-") as name:
        folder = Path(name)
        made, empty = folder / "dist", folder / "empty"
        empty.mkdir()
        run([sys.executable, "-m", "build", "--outdir", made, ROOT], folder)
        wheel, sdist = sorted(made.iterdir(), key=lambda one: one.suffix, reverse=True)
        assert (wheel.suffix, sdist.suffix) == (".whl", ".gz"), (wheel, sdist)
        with tarfile.open(sdist) as file:
            file.extractall(folder, filter="data")
        source = folder / sdist.name.removesuffix(".tar.gz")
        run([sys.executable, "-m", "venv", folder / "fresh"], folder)
        programs = folder / "fresh" / ("Scripts" if os.name == "nt" else "bin")
        python = programs / "python"
        run(
            [
                python,
                "-m",
                "pip",
                "install",
                "--quiet",
                f"{wheel}[cli,report]",
                "pytest",
                "hypothesis",
            ],
            folder,
        )
        run([python, "-c", CHECK, ROOT], empty)
        run([programs / "onefit", "demo", "--report", "demo.html"], empty)
        assert (empty / "demo.html").stat().st_size > 10_000
        run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS], source)
        if every:
            run([sys.executable, "-m", "pytest", "-q"], source, PYTHONPATH=source / "src")
    print(f"release check passed in {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
