"""FMI: a robot as a functional mock-up unit (FMU) for other tools, and another tool's FMU as a plant in our loop."""
