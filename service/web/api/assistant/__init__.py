"""The endpoints of the assistant, and of those who read its log."""
