"""The endpoints of the agent."""
