"""RDS and Aurora: the resources of Pulumi, and what boto3 asks of the running database.

names        names of children, and the aliases of those that had another one
preloading   shared_preload_libraries as a resource: merged with what it was, nothing lost unasked
parameters   the parameter group of an instance; of a cluster, and of its instances
network      subnet group and security group, given or made
database     an instance (RDS)
cluster      a cluster and its instances (Aurora)
calls        boto3: a client, and its errors in words a user can act on
reboot       what waits for a reboot; the reboot, readers first
secrets      the master's password, by the ARN of its secret

Decisions are ``infra.rds``; here they are only carried out.
"""
