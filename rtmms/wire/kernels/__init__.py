"""Compiled exchange: system calls, messages of a known layout, and a whole step in one call.

The kernels take addresses and whole numbers only. They pass unusual messages to Python unchanged.
"""
