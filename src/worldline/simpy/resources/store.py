"""SimPy's module of this name."""

from worldline.simpy.resources.shared import (
    FilterStore,
    FilterStoreGet,
    PriorityItem,
    PriorityStore,
    Store,
    StoreGet,
    StorePut,
)

__all__ = ["FilterStore", "FilterStoreGet", "PriorityItem", "PriorityStore", "Store", "StoreGet", "StorePut"]
