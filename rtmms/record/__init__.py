"""Runs in files: every step of a run written without making it wait, read again, run again to the same bits.

layout.py is the format; recorder, ring and writer put it on disk; log, tables and rerun read it.
"""
