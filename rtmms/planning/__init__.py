"""Plans by a plant's own model, many times a second: by rollouts of candidate plans, or by derivatives.

- cost.py: the cost of a plan, a compiled function of a state, a command and the time; its derivatives
- planner.py: one plan from candidates, rollouts, costs, within a time; the methods (cross-entropy, MPPI, predictive
  sampling) that lead from the costs to the next mean; plans as knots of the commands
- strokes.py, waves.py: plans as gait parameters of two fins, of a chain of joints
- ilqr.py: one plan by derivatives of the model (rtmms.analysis.stages) and of the cost, within limits; box_qp.py has
  its quadratic programme in a box
- linear.py: one plan by a linear model of half strokes about a hovering orbit
- reconstructed_state.py: the whole state of a robot from its pose and twist, the current that it drifts in, and the
  error of the coarse model that plans use
- shown_candidates.py: a few candidates for viewers
- tasks.py, swaying.py: available costs
"""
