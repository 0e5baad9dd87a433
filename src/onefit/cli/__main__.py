"""``python -m onefit.cli``."""

from onefit.cli import main

main()
