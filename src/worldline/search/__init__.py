"""The search for a failure: many seeds, properties that must hold, and the shortest schedule that still fails."""

from worldline.search.linearizability import NotLinearizable, check_linearizable, register
from worldline.search.operations import Access, Operation, OperationLog, Transaction, operations_in, transactions_in
from worldline.search.properties import Happening, Property, Story, Violation, always, at_end, eventually, leads_to
from worldline.search.serializability import NotSerializable, check_serializable

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
