"""The boxes of the stack that JOBWARDEN_STACK names, for pyinfra."""

from infra.box.hosts import inventory

boxes = inventory()
