"""Errors of embeddings."""

from __future__ import annotations

from lns.errors import LNSError


class NoEmbedding(LNSError):
    """No route found room for a shape on a chip; the message says what would fit."""


class InvalidEmbedding(LNSError):
    """An embedding breaks a rule of minor embeddings; the message names the chain or the coupling."""
