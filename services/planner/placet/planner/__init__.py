"""The planner: the loop around the model as a stateless state machine, and the transcript. It decides and runs nothing."""
