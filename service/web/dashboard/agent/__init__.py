"""The jobs of the agent."""
