"""What stands below the options in `worldline nodes --help`: all that has a syntax of its own, for 80 columns."""

SYNTAX = """\
Shapes, for --topology:
  clique:5  ring:8  line:4  star:6  hypercube:4  grid:4x5  torus:4x4
  tree:15,arity=2             a root, its children, and so on
  random:20,p=0.2             each edge with probability p
  random:20,degree=4          this many neighbors on average
  scale-free:50,m=2           each new node links to m older ones
  small-world:50,k=4,p=0.1    a ring with k neighbors each, some links rewired
  geometric:40,radius=0.25    random points in a square, linked if near
  Append to any:  ,connected  ,shuffled  ,weights=1-10  ,weights=1-999,distinct

Latencies, for --latency:
  5ms  "uniform(1ms, 9ms)"  "exponential(1ms, 20ms)"  "normal(6ms, 1ms, 4ms)"
  "table(3ms, 3ms, 17ms)"

Faults, for --fault:
  "2s crash 1"  "3s recover 1"  "1s partition 0 1"  "2s repair"
  "1s down 0 2"  "2s up 0 2"  "1s add 0 3"  "1s remove 0 1"

Kinds of faults, for --faults:
  crash=2,partition=1,link=2,loss=0.1,duplication=0.1   or any of these

What shrinking leaves alone, for --keep:
  nodes        the number of nodes
  topology     the graph itself
  parameters   all parameters; or name them: rounds
  faults       all faults, including those drawn from the seed
  messages     the latency of every message
  seed         everything drawn from the seed
"""
