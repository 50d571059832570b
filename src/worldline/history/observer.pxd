cdef class Observer:
    cpdef began(self, who, long long at)
    cpdef sent(self, who, long long number, topic, long long at, payload, long long until, detail=*)
    cpdef arrives(self, sender, long long number, receiver, long long at, long long copy, lost)
    cpdef lasts(self, sender, long long number, long long until)
    cpdef closed(self, receiver, topic, long long at)
    cpdef noted(self, who, topic, long long at, payload, detail=*)
    cpdef ended(self, who, long long at, chain)
    cpdef passed(self, long long time)
