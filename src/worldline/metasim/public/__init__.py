"""The public LCM: what a run's server receives and delivers, for LCM programs that look on."""

from worldline.metasim.public.broker import TcpqBroker
from worldline.metasim.public.mirror import PublicLcm
from worldline.metasim.public.tcpq import PublicName, check_public_names, parse_public_name

__all__ = ["PublicLcm", "PublicName", "TcpqBroker", "check_public_names", "parse_public_name"]
