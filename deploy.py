"""Take every box of a stack from bare Debian to a watched queue.

JOBWARDEN_STACK=production pyinfra inventory.py deploy.py --dry    what it would do
JOBWARDEN_STACK=production pyinfra inventory.py deploy.py -y       do it
"""

from infra.box.deploy import box

box()
