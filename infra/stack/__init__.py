"""The Pulumi program: the final step as resources, for every database that psycopg can reach.

setting     the environment, from Pulumi's own configuration
parts       what each resource declares, the plan of its share, and what is there of it
reach       a connection, or the reason why there is none
provider    create, update, read and delete, by the plan and apply of the command line
resources   the resources, and the component that holds them
managed     RDS and Aurora: an environment as components, before the final step
rebooting   what waits for a reboot, or the reboot, as a resource
program     joins them; says what is not registered, and why

Pulumi keeps a provider in the state by its name, so modules and classes here keep theirs.
"""
