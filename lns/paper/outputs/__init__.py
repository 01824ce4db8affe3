"""Tables, figures and a page, made from the files of a run alone."""
