"""A probe leaves its base, drops a lander, turns, and comes back younger."""

from worldline.spacetime import Agent, Channel, ForwardSimulation, Minkowski, above

UNTIL = 30.0


class Base(Agent):
    def begin(self, friends):
        self.friends = friends
        self.after(1.0, Base.ask)

    def ask(self):
        for channel in self.friends.values():
            if channel.is_open:
                channel.send("answer", self.local_time)
        self.after(3.0, Base.ask)

    def meet(self, friend):
        self.log(f"hears of {friend.name}")
        self.friends[friend.name] = Channel(self, friend)

    def hear(self, name, asked, age):
        self.log(f"asked at {asked:g}, {name} was {age:g} old")


class Craft(Agent):
    def answer(self, asked):
        self.to_base.send(Base.hear, self.name, asked, self.local_time)


class Lander(Craft):
    pass


class Probe(Craft):
    def drop(self):
        lander = Lander()
        lander.name = "lander"
        lander.velocity = self.space.rest
        lander.to_base = Channel(lander, self.to_base.target())
        self.log("drops a lander")
        self.to_base.send(Base.meet, lander.reference())
        lander.after(11.0, Lander.die)

    def turn(self):
        self.log("turns")
        self.velocity = self.space.velocity(-0.6)


def land(probe, boundary):
    probe.velocity = probe.space.rest
    probe.log(f"lands, at {boundary}, {probe.local_time:g} years old")


def model(*, seed=0):
    ground = above(2, 1, 0.5, land)
    simulation = ForwardSimulation(Minkowski(2), boundary=ground, seed=seed)
    with simulation:
        base, probe = Base(), Probe()
        base.name, probe.name = "base", "probe"
        probe.jump_to((0, 1))
        probe.velocity = simulation.space.velocity(0.6)
        probe.after(8.0, Probe.turn)
        probe.after(4.0, Probe.drop)
        probe.to_base = Channel(probe, base)
        base.begin({"probe": Channel(base, probe)})
    return simulation
