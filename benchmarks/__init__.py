"""What rlotel costs, as ratios against the same work without it, measured in one run."""
