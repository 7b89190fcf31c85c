"""The pages about readers: questions, their sources, gaps and analytics."""
