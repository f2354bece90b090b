"""Runs in files: every step of a run is written without delaying it, can be read, and can be replayed to the same bits.

log_messages.py is the format; recorder, ring and writer write it; log, tables and rerun read it.
"""
