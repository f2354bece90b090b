"""What is made of runs: figures and tables, and one folder a paper with its claims beside ours.

Draws and counts; nothing here steps a plant on a schedule.
"""
