"""Common parts for CAN: a bus that comes and goes, messages in the layout of a DBC file, CiA 402 drives.

The bridges themselves are one level up, one a file.
"""
