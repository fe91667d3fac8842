"""What a trainer logs, whatever logger it uses: key tables, and log calls that become iterations."""
