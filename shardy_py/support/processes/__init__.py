"""Child processes; no other package starts any.

`start` starts them, alone or as a pool, `child` sends requests to a process and limits its time, `serve` runs in it.
A test fails if another package starts a process.
"""
