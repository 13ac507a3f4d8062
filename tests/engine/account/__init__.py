"""An AWS account for tests: moto's RDS, with the rules of AWS that moto does not know.

Read ``facts`` (what the engine versions and parameters are), ``rules`` (what is refused),
``booted`` (what each instance runs with, hence ``pending-reboot``), ``control`` (who boots and
where it listens), ``service_groups`` and ``service`` (the API over moto), ``server``.

What it does not prove: that AWS says the same. The error codes are those of the RDS API reference;
the wording is AWS's where a public thread quotes it, else ours. Only the parameters and versions in
``facts`` exist here. Changes are instant: no ``creating``, ``modifying`` or ``rebooting`` state
lasts, and no change waits for a maintenance window. Who may do what (IAM) is not asked.
"""
