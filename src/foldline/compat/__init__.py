"""The documented APIs of five other systems.

Each module translates the terms of one system; foldline's engine makes the decisions.
"""
