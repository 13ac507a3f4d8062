"""``python -m infra`` is ``jobwarden``."""

from infra.cli import main

main()
