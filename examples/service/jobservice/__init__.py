"""A small service on a jobs table: an API that clients poll, and workers that do the jobs."""
