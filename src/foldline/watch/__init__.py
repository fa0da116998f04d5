"""Watches an agent from outside: how full its window is, what it costs, and what must survive its next compaction.

Input: the events of an agent's stream or the lines of its session file. Output: figures, events and the scratch files.
The agent needs no changes, and no ledger is needed. The input is untrusted, so no input may cause an exception.
"""
