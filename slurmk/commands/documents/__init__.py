"""The documents of Slurm's data parser, v0.0.42 to v0.0.45: what ``--json`` and ``--yaml`` print and the REST API sends.

A document is plain data: objects are dicts in the order in which Slurm prints them, lists are lists, and a number that
may be unset or infinite is a ``values.Number``. Each kind of thing has a module with a table, its ``Shape``, one row a
member; a row says in which versions the member is there. ``text`` writes documents as JSON and YAML.

The rooms above use ``jobs.JOB.document(view, version)`` and its kin and put the results into ``envelope.enveloped``.
"""
