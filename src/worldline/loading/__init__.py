"""Loading of what users have written."""
