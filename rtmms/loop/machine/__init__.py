"""The machine a run is on: scheduler, memory, cores, how short a wait can be, and who watches that it keeps its word.

What is not permitted or not there is told, never fatal.
"""
