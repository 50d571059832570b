# The C types of `shared.py`.

cimport cython
from cpython.long cimport PyLong_AsLongLongAndOverflow

from worldline.simpy._native cimport PyObject_GenericDelAttr, PyObject_GenericSetAttr, empty, place_of, remove_at, wl_give_dict
from worldline.simpy.engine cimport (
    LEADS,
    NORMAL_,
    SUCCEEDED,
    TRIGGERED,
    Environment,
    Event,
    stand_in,
    fulfil,
)


cdef class BaseResource:
    cdef public Environment _env
    cdef public object _capacity
    cdef public object put_queue
    cdef public object get_queue
    cdef bint _wl_is_plain
    cdef object _wl_dict
    cdef object __weakref__

    cdef bint _wl_put(self, Event event) except -1
    cdef bint _wl_get(self, Event event) except -1


cdef class Asking(Event):
    cdef public BaseResource resource
    cdef public object proc
    cdef bint _wl_is_put


cdef class Put(Asking):
    pass


cdef class Get(Asking):
    pass


cdef class Request(Put):
    cdef public object usage_since


cdef class PriorityRequest(Request):
    cdef public object priority
    cdef public object preempt
    cdef public object time
    cdef public object key


cdef class Release(Get):
    pass


cdef class Preempted:
    cdef public object by
    cdef public object usage_since
    cdef public object resource


cdef class Resource(BaseResource):
    cdef public list users


cdef class PriorityResource(Resource):
    pass


cdef class PreemptiveResource(PriorityResource):
    pass


cdef class ContainerPut(Put):
    pass


cdef class ContainerGet(Get):
    pass


cdef class Container(BaseResource):
    cdef public object _level


cdef class StorePut(Put):
    pass


cdef class StoreGet(Get):
    pass


cdef class FilterStoreGet(StoreGet):
    pass


cdef class Store(BaseResource):
    cdef public list items


cdef class PriorityStore(Store):
    pass


cdef class FilterStore(Store):
    pass
