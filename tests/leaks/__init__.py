"""Models that leak: one for each kind of simulation, whose parameter `leak` says what; with "none" they are honest.

In all of them alice, bob and carol tell a ledger something now and then, and bob tells it once what he has got from
where he shouldn't. The ledger passes that on to carol, who tells alice, so that a difference has consequences.
"""
