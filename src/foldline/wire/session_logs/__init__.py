"""Session files of coding agents: each module registers one format."""
