"""Three diffs on one page: runs the tools as subprocesses, at the same time, each with a limit.

needs       which tools a target needs, and with what
running     one tool: its answer, or the reason why there is none
tools       pulumi and pyinfra, read into parts
database    the plan and the row counts, asked in a process of its own
revision    an environment as another git ref has it
preview     joins them
"""
