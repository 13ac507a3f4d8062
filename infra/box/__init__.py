"""Boxes: servers of one's own, over ssh, by pyinfra. It carries what the pure modules decide.

carrier     one remote script at a time, its answer, and errors that name host and step
looking     the one fact, read once and kept until something was changed
operations  install, configure, restart, apply, prove, units, fallback, removal
deploy      their order
inventory   the hosts of a stack
"""
