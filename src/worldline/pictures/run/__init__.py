"""A page of any recorded run: its members as lanes, and what they send each other."""

from worldline.pictures.run.page import run_page

__all__ = ["run_page"]
