"""Watch an agent from outside: how full its window is, what it costs, what must survive its next compaction.

Input: the events of an agent's stream or the lines of its session file. Output: figures, events and the scratch files.
The agent need not cooperate and no ledger is needed. The input is untrusted: nothing in it can raise.
"""
