"""The commands of the command line, one per module: `add_parser` and `run`.

They import what they need when they run, so that ``lns --help`` answers at once.
"""
