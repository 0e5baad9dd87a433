"""``python -m onefit``."""

from onefit.cli import main

main()
