"""An agent seen from outside: how full its window is, what it cost, what must survive its next compaction.

Nothing here needs the agent's consent or foldline's own ledger: events of a stream or lines of a session file come in,
figures, notices and the scratch files come out. The events are a stranger's, so nothing in them can raise.
"""
