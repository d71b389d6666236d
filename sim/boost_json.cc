// Boost.JSON inside the stand-in, so that it needs no library of the box it is loaded in.
#include <boost/json/src.hpp>
