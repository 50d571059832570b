"""Files: what is loaded from a user's file, and how a file of ours gets its name only when it is whole."""
