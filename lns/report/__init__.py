"""The report of a run: one HTML page without anything from elsewhere, written or served live."""
