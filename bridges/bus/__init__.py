"""What CAN takes: a bus that comes and goes, messages laid out by a DBC file, CiA 402 drives.

No bridge itself: those are one level up, one a file.
"""
