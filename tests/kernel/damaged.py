"""Can't be loaded, as a compiled module can't that was made for another version of one that it uses."""

raise ValueError("the size of Queue has changed")
