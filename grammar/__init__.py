"""Text to values and back: command lines, scripts, host lists, times, sizes, TRES, formats, slurm.conf.

Every parser is small and pure. Bad text raises ``grammar.errors.GrammarError`` with a message that says what is wrong
and where.
"""
