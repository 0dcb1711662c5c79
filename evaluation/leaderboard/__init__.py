"""The leaderboard: many models on one frozen dataset, head against long tail."""
