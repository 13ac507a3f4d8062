"""A ``pulumi-resource-aws`` for tests: the engine talks to it as to the real provider.

It turns the resources of ``aws:rds`` and a few of ``aws:ec2`` into calls of boto3, which checks
each against AWS's own service model, and sends them to ``AWS_ENDPOINT_URL``: the account in
``tests.engine.account``.

What it does not prove. The real provider is another program: its schema and property checks, its
defaults, its waits and retries, its way to tell a diff, and what it sends where several calls would
do are only imitated here where a program of ours meets them (names made up from a prefix, 20
parameters a call, a change of ``applyMethod`` alone is no change, replacement on a new family, what
stays behind when a creation fails half way). An input that is not listed here is refused, so that
nothing is ignored in silence.

Read ``kinds`` (what a resource is), ``groups``, ``databases``, ``clusters``, ``network``,
``invokes``, ``service``.
"""
