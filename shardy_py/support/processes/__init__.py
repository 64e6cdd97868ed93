"""Child processes; no other package starts any.

`start` starts them, `child` asks one of them and bounds what it may take, `serve` is what runs in it, `pools` starts
several that evaluate schedules. A test fails where another room starts a process.
"""
