"""The commands of ``shardy``, one file each: its options, and a function that imports the work when it runs."""
