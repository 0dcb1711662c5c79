"""Statistics, results, drawing and vocabulary that the evaluations share."""
