"""The page: a run looked at in a browser, while it happens or from its recording."""
