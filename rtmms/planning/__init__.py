"""Plans by sampling: rollouts of a plant's own model under candidate plans, weighed by a cost, many times a second.

cost.py     what a plan costs: a function of a state, a command and the time, compiled
words.py    what a plan is made of: gait words of two fins (strokes.py), or knots of the commands (knots.py)
methods     cross_entropy.py, mppi.py, predictive_sampling.py: from the costs of candidates to the next mean
planner.py  one plan: candidates, rollouts, costs, within a time
tasks.py    given costs
"""
