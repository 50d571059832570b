"""Other co-simulation frameworks in the scenarios of our federation benchmark, and the limit that TCP sets."""
