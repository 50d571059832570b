"""Reads tokens: never from the command line, where everybody on the machine could see them."""

from __future__ import annotations

import os
from pathlib import Path

from worldline.model import UsageError


def token_in(file: Path | None) -> str | None:
    """Read the token from its file, or without one from the environment."""
    if file is not None:
        return read_token(file)
    from worldline.federation.environment import TOKEN  # Here, since most runs have none.

    return os.environ.get(TOKEN) or None


def operator_token_in(file: Path | None) -> str | None:
    """Read the operator's token, in the same way."""
    if file is not None:
        return read_token(file)
    from worldline.federation.environment import OPERATOR_TOKEN

    return os.environ.get(OPERATOR_TOKEN) or None


def read_token(file: Path) -> str:
    """Read a token that must be there."""
    try:
        token = file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UsageError(f"the token can't be read from {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the token file {file} isn't UTF-8 text", advice="a token is one line of text") from error
    if not token:
        raise UsageError(f"the token file {file} is empty")
    return token
