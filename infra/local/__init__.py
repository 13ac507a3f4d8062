"""A private Postgres on this machine, for trying things out and for tests.

servers     which Postgres servers are installed, and what to install when none fits
owner       the OS user a server runs as (Postgres refuses to run as root)
cluster     one private cluster: a folder, a Unix socket, no port on the network
persistent  the same cluster kept between commands: up, down, status

Nothing here speaks SQL. It starts and stops the server's own programs.
"""
