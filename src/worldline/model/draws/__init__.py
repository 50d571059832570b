"""Draws: every random number of a run has a name, a distribution and a value, which a table may replace.

A draw isn't taken from a generator that others may have asked before: its bits are a function of the seed, of
what it is for, and of a number (`model.randomness`). So it can be made anywhere, again and in any order, nothing of it
needs to be recorded, and one of them can be replaced while all others stay.

==============  ======================================================================================================
distributions   turn bits into a value (a latency, a chance, a place in a payload), and know which values are possible
names           ``latency/image/camera/planner/17``: what a draw is for; patterns that match names, and names in words
table           rows that replace draws (by a value, the antithetic draw, another seed, a function), and the table that
                makes the draws of a run by them: for links, boots, streams and clocks
checks          whether rows can apply to a run at all: before it as far as possible, and at its end
==============  ======================================================================================================
"""
