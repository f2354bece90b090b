"""Plans by a plant's own model, many times a second: by rollouts under candidate plans, weighed by a cost, or by the
derivatives of both.

cost.py     what a plan costs: a function of a state, a command and the time, compiled
words.py    what a plan is made of: gait words of two fins (strokes.py), or knots of the commands (knots.py)
methods     cross_entropy.py, mppi.py, predictive_sampling.py: from the costs of candidates to the next mean
planner.py  one plan: candidates, rollouts, costs, within a time
ilqr.py     one plan by derivatives, within limits: those of the model (rtmms.analysis.stages), those of the cost
            (cost_slopes.py), and a quadratic programme in a box (box_qp.py)
linear.py   one plan by a linear model of half strokes about a hovering orbit (stroke_map.py)
shown.py    a few candidates, for viewers
model_error.py   how far the coarse model that plans are made with is off
tasks.py    given costs
"""
