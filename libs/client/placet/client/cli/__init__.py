"""The `placet` command: what a person at a terminal can do with the HTTP API, and nothing that others could not."""
