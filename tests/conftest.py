"""One Hypothesis profile: the same examples in every run, whatever the machine's speed."""

from hypothesis import settings

settings.register_profile("repeatable", max_examples=50, derandomize=True, deadline=None, database=None)
settings.load_profile("repeatable")
