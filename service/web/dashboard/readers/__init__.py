"""What readers ask: questions, their sources, gaps and analytics."""
