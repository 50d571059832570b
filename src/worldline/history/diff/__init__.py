"""Where two histories part, why, and how it went on from there."""
