"""The boxes of the stack that JOBWARDEN_STACK names, for pyinfra."""

from pyinfra import config

from infra.box.hosts import inventory

# Without -y pyinfra has set FAIL_PERCENT to 0 by now: it would ask, or die where nobody answers,
# at the first host that cannot be reached. This brings back what the options said.
config.reset_locked_state()

boxes = inventory()
