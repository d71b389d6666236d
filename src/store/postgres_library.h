#pragma once

// libpq, loaded when the first PostgreSQL database is opened and not before: it brings a dozen
// libraries along, and nobody but a server on PostgreSQL should wait for them at every start.

#include <libpq-fe.h>

#include "base/result.h"

namespace ringfence::store {

#define RINGFENCE_LIBPQ(X) \
  X(PQclear)               \
  X(PQcmdStatus)           \
  X(PQconndefaults)        \
  X(PQconnectPoll)         \
  X(PQconnectStartParams)  \
  X(PQconninfoFree)        \
  X(PQconninfoParse)       \
  X(PQconsumeInput)        \
  X(PQerrorMessage)        \
  X(PQfinish)              \
  X(PQflush)               \
  X(PQfreemem)             \
  X(PQftype)               \
  X(PQgetisnull)           \
  X(PQgetlength)           \
  X(PQgetResult)           \
  X(PQgetvalue)            \
  X(PQisBusy)              \
  X(PQnfields)             \
  X(PQnotifies)            \
  X(PQntuples)             \
  X(PQresultErrorField)    \
  X(PQresultErrorMessage)  \
  X(PQresultStatus)        \
  X(PQsendPrepare)         \
  X(PQsendQuery)           \
  X(PQsendQueryPrepared)   \
  X(PQsetnonblocking)      \
  X(PQsetNoticeProcessor)  \
  X(PQsocket)              \
  X(PQstatus)

struct Libpq {
#define RINGFENCE_LIBPQ_MEMBER(name) decltype(&::name) name = nullptr;
  RINGFENCE_LIBPQ(RINGFENCE_LIBPQ_MEMBER)
#undef RINGFENCE_LIBPQ_MEMBER
};

// The library, for as long as the process lives; kFailedPrecondition when it is not installed.
Result<const Libpq*> LoadLibpq();

}  // namespace ringfence::store
