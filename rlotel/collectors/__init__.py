"""What a process reads of the machine it runs on, in threads of its own. One subject a file."""
