"""The Pulumi program: `pulumi up` runs it. See docs/howto/pulumi.md."""

from infra.stack import program

program.run()
