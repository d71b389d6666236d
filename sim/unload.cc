// The C++ library inside a stand-in keeps memory for exceptions that it would leak when the
// stand-in is unloaded.

namespace __gnu_cxx {
void __freeres();
}

namespace {
__attribute__((destructor)) void ReleaseExceptionMemory() { __gnu_cxx::__freeres(); }
}  // namespace
