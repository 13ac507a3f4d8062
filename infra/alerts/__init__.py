"""Deliver alerts: the only place that makes HTTP requests.

send     one message to one route, and what came of it
runner   from event to message, for as long as the unit runs
"""
