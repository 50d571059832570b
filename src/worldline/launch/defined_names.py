"""Reads from a module's source which names it defines, without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

_ELUSIVE = {"globals", "locals", "vars", "setattr", "exec", "eval", "modules", "__getattr__", "*"}
"""Whoever uses one of these may define names that no reader of the source finds."""


@lru_cache(maxsize=16)  # Many participants may be defined in one module.
def names_in(source: bytes) -> frozenset[str] | None:
    """Return what a module defines at its top level; None if that can't be told from its source."""
    tree = ast.parse(source)
    used = {name for node in ast.walk(tree) for name in _words(node)}
    if used & _ELUSIVE:
        return None
    return frozenset(name for node in _top_level(tree) for name in _bound(node))


def _words(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.alias | ast.FunctionDef):
        yield node.name
    elif isinstance(node, ast.Global):
        yield "globals"


def _top_level(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what runs when the module is imported: all but the bodies of functions and classes."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _top_level(child)


def _bound(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
