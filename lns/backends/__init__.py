"""Where the neighbourhoods of a round are run."""
