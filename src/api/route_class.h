/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What kind of work a route is: its limits go by that (api/call_limits.h), it is written to the
 * audit log, and what is measured is told apart by it. A row of the route table adds its class to
 * its scope (SCOPE_WRITE | CLASS_EXEC); one that names none is READ or WRITE, as its scope and
 * method say.
 */

#include "http/router.h"

/* X(name, text, what it is) */
#define ROUTE_CLASSES(X)                                                                           \
    X(READ, "read", "looking at what there is")                                                    \
    X(WRITE, "write", "changing something")                                                        \
    X(CREATE, "create", "making, cloning and starting sandboxes")                                  \
    X(EXEC, "exec", "running commands and code")                                                   \
    X(FILES, "files", "reading and writing files")                                                 \
    X(STREAM, "stream", "following: logs, events, terminals")                                      \
    X(PROXY, "proxy", "what goes to ports of sandboxes")                                           \
    X(LOGIN, "login", "tokens for keys")                                                           \
    X(FREE, "free", "what is never limited: health, metrics, documentation")

enum route_class {
#define X(name, text, what) ROUTE_CLASS_##name,
    ROUTE_CLASSES(X)
#undef X
        ROUTE_CLASS_COUNT
};

enum { ROUTE_CLASS_SHIFT = 16 };

/* In a row, beside its scope. */
enum {
#define X(name, text, what) CLASS_##name = (ROUTE_CLASS_##name + 1) << ROUTE_CLASS_SHIFT,
    ROUTE_CLASSES(X)
#undef X
};

/* NULL: no row fits the request. */
enum route_class route_class(const struct route *route);
/* "exec" */
const char *route_class_name(enum route_class class);
/* ROUTE_CLASS_COUNT when it is none. */
enum route_class route_class_parse(struct slice name);
