from worldline.federation.host cimport Host
