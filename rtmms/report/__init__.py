"""What is made of runs: figures, tables, and a paper's claims beside ours (the papers themselves: rtmms.papers).

Draws and counts; nothing here steps a plant on a schedule.
"""
