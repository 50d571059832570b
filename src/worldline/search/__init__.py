"""The search for a failure: many seeds, properties that must hold, and the shortest schedule that still fails."""

from worldline.search.operations import (
    Access,
    NotLinearizable,
    NotSerializable,
    Operation,
    OperationLog,
    Transaction,
    check_linearizable,
    check_serializable,
    operations_in,
    register,
    transactions_in,
)
from worldline.search.properties import Happening, Property, Story, Violation, always, at_end, eventually, leads_to

__all__ = [
    "Access",
    "Happening",
    "NotLinearizable",
    "NotSerializable",
    "Operation",
    "OperationLog",
    "Property",
    "Story",
    "Transaction",
    "Violation",
    "always",
    "at_end",
    "check_linearizable",
    "check_serializable",
    "eventually",
    "leads_to",
    "operations_in",
    "register",
    "transactions_in",
]
