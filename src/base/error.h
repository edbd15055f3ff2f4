/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The one error value of the whole system.
 *
 * A function that can fail returns 0 or -1 (or a pointer, NULL on failure) and takes a
 * `struct error *` last. Setting the error is the only way to make a -1: error_set() and
 * error_sys() both return it, so that `return error_set(err, …)` is how a failure starts.
 *
 * The value holds no pointers. It can live on the stack of a child that must not allocate
 * after clone(), and can be sent down a pipe as it is.
 *
 * One closed list of codes; each row says what the code means outside:
 * X(code, number, HTTP status, CLI exit status).
 *
 * The number is what processes send each other. Agents of an earlier release send the numbers of
 * that release, so a number is never changed, and never used again once its code is gone. A new
 * code takes the next free number, wherever in the list it stands.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#define ERROR_CODES(X)                                                                             \
    X(INTERNAL, 1, 500, 1)                                                                         \
    X(INVALID_ARGUMENT, 2, 400, 2)                                                                 \
    X(INVALID_JSON, 3, 400, 2)                                                                     \
    X(UNKNOWN_FIELD, 4, 400, 2)                                                                    \
    X(INVALID_NAME, 5, 400, 2)                                                                     \
    X(INVALID_QUANTITY, 6, 400, 2)                                                                 \
    X(INVALID_DURATION, 7, 400, 2)                                                                 \
    X(INVALID_PATH, 8, 400, 2)                                                                     \
    X(INVALID_MULTIPART, 9, 400, 2)                                                                \
    X(INVALID_HTTP, 10, 400, 1)                                                                    \
    X(CONFLICTING_CREDENTIALS, 11, 400, 2)                                                         \
    X(UNAUTHORIZED, 12, 401, 5)                                                                    \
    X(FORBIDDEN, 13, 403, 5)                                                                       \
    X(PERMISSION_DENIED, 14, 403, 5)                                                               \
    X(CALLBACK_REFUSED, 15, 403, 5)                                                                \
    X(SHELL_NOT_ALLOWED, 16, 403, 5)                                                               \
    X(ROUTE_NOT_FOUND, 17, 404, 1)                                                                 \
    X(SANDBOX_NOT_FOUND, 18, 404, 3)                                                               \
    X(GROUP_NOT_FOUND, 19, 404, 3)                                                                 \
    X(WORKSPACE_NOT_FOUND, 20, 404, 3)                                                             \
    X(KEY_NOT_FOUND, 21, 404, 3)                                                                   \
    X(FILE_NOT_FOUND, 22, 404, 3)                                                                  \
    X(UPLOAD_NOT_FOUND, 23, 404, 3)                                                                \
    X(PROCESS_NOT_FOUND, 24, 404, 3)                                                               \
    X(MONITOR_NOT_FOUND, 25, 404, 3)                                                               \
    X(IMAGE_NOT_FOUND, 26, 404, 3)                                                                 \
    X(PREVIEW_NOT_FOUND, 27, 404, 3)                                                               \
    X(TOKEN_NOT_FOUND, 28, 404, 3)                                                                 \
    X(TERMINAL_NOT_FOUND, 29, 404, 3)                                                              \
    X(POOL_NOT_FOUND, 30, 404, 3)                                                                  \
    X(SECRET_NOT_FOUND, 31, 404, 3)                                                                \
    X(METHOD_NOT_ALLOWED, 32, 405, 1)                                                              \
    X(REQUEST_TIMEOUT, 33, 408, 6)                                                                 \
    X(ALREADY_EXISTS, 34, 409, 4)                                                                  \
    X(ALREADY_RUNNING, 35, 409, 4)                                                                 \
    X(SANDBOX_EXPIRED, 36, 409, 4)                                                                 \
    X(NOT_RUNNING, 37, 409, 4)                                                                     \
    X(IS_A_DIRECTORY, 38, 409, 4)                                                                  \
    X(NOT_A_DIRECTORY, 39, 409, 4)                                                                 \
    X(NOT_A_FILE, 40, 409, 4)                                                                      \
    X(DIRECTORY_NOT_EMPTY, 41, 409, 4)                                                             \
    X(WORKSPACE_NOT_EMPTY, 42, 409, 4)                                                             \
    X(CONFLICT, 43, 409, 4)                                                                        \
    X(NO_STDIN, 44, 409, 4)                                                                        \
    X(STDIN_CLOSED, 45, 409, 4)                                                                    \
    X(RESOURCE_IN_USE, 46, 409, 4)                                                                 \
    X(INSUFFICIENT_RESOURCES, 47, 409, 7)                                                          \
    X(REVISION_CONFLICT, 48, 409, 4)                                                               \
    X(REVISION_MISMATCH, 49, 412, 4)                                                               \
    X(LENGTH_REQUIRED, 50, 411, 1)                                                                 \
    X(PAYLOAD_TOO_LARGE, 51, 413, 7)                                                               \
    X(URI_TOO_LONG, 52, 414, 7)                                                                    \
    X(UNSUPPORTED_MEDIA_TYPE, 53, 415, 2)                                                          \
    X(RANGE_NOT_SATISFIABLE, 54, 416, 2)                                                           \
    X(EXPECTATION_FAILED, 55, 417, 1)                                                              \
    X(WAIT_TIMEOUT, 56, 422, 6)                                                                    \
    X(UPGRADE_REQUIRED, 57, 426, 2)                                                                \
    X(LIMIT_EXCEEDED, 58, 429, 7)                                                                  \
    X(TOO_MANY_ATTEMPTS, 59, 429, 7)                                                               \
    X(HEADERS_TOO_LARGE, 60, 431, 7)                                                               \
    X(NOT_IMPLEMENTED, 61, 501, 1)                                                                 \
    X(PORT_NOT_LISTENING, 62, 502, 6)                                                              \
    X(UPSTREAM_FAILED, 63, 502, 6)                                                                 \
    X(UNAVAILABLE, 64, 503, 6)                                                                     \
    X(TIMEOUT, 65, 504, 6)                                                                         \
    X(HTTP_VERSION, 66, 505, 1)                                                                    \
    X(QUOTA_EXCEEDED, 67, 507, 7)                                                                  \
    X(CANCELLED, 68, 499, 6)                                                                       \
    X(NETWORK_REFUSED, 69, 403, 5)                                                                 \
    X(NETWORK_UNAVAILABLE, 70, 503, 6)                                                             \
    X(PORT_NOT_PUBLISHED, 71, 404, 3)                                                              \
    X(PORT_IN_USE, 72, 409, 4)                                                                     \
    X(CODE_LANGUAGE_UNKNOWN, 73, 400, 2)                                                           \
    X(CODE_CONTEXT_NOT_FOUND, 74, 404, 3)                                                          \
    X(CODE_INTERPRETER_MISSING, 75, 409, 4)                                                        \
    X(CODE_KERNEL_FAILED, 76, 502, 6)                                                              \
    X(WATCHER_NOT_FOUND, 77, 404, 3)                                                               \
    X(SNAPSHOT_NOT_FOUND, 78, 404, 3)                                                              \
    X(CODE_INTERPRETER_UNFIT, 79, 409, 4)                                                          \
    X(EXECUTION_NOT_FOUND, 80, 404, 3)                                                             \
    X(HISTORY_DISABLED, 81, 409, 4)                                                                \
    X(ROLLBACK_BLOCKED, 82, 409, 4)                                                                \
    X(CONTAINER_CREATION_FAILED, 83, 422, 4)                                                       \
    X(CONTAINER_START_FAILED, 84, 503, 6)                                                          \
    X(EXECUTION_FAILED, 85, 422, 1)                                                                \
    X(EXECUTION_TIMEOUT, 86, 422, 6)                                                               \
    X(EXECUTION_OUT_OF_MEMORY, 87, 422, 7)                                                         \
    X(RATE_LIMITED, 88, 429, 7)                                                                    \
    X(TOO_MANY_STREAMS, 89, 429, 7)                                                                \
    X(TOO_MANY_SANDBOXES, 90, 429, 7)                                                              \
    X(AUDIT_UNAVAILABLE, 91, 503, 6)                                                               \
    X(AGENT_INCOMPATIBLE, 92, 409, 4)                                                              \
    X(MEMORY_LIMITED, 93, 429, 7)                                                                  \
    X(OVERLOADED, 94, 503, 6)

enum error_code {
    ERROR_NONE = 0,
#define X(code, number, http, exit) ERROR_##code = (number),
    ERROR_CODES(X)
#undef X
};

enum { ERROR_NUMBERS = 256 }; /* every number is below this */

/* Whose trouble it is, of four kinds: what a code's category is follows from its status (4xx: the
 * client's, 5xx: the system's), but for those that error.c lists. */
enum error_category {
    CATEGORY_CLIENT,    /* what was asked for cannot be, whatever the state of things */
    CATEGORY_CONTAINER, /* a sandbox, or what it is made of */
    CATEGORY_EXECUTION, /* what was run in it */
    CATEGORY_SYSTEM,    /* the server and its machine */
};

enum { ERROR_MESSAGE_MAX = 384 };

struct error {
    enum error_code code;
    int sys; /* the errno behind it, 0 if there is none */
    char message[ERROR_MESSAGE_MAX];
};

/* Sets *err (NULL: the caller does not care) and returns -1. */
int error_set(struct error *err, enum error_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Sets *err from errno and returns -1. The code is chosen from errno (ENOENT: FILE_NOT_FOUND,
 * EDQUOT and ENOSPC: QUOTA_EXCEEDED, …; INTERNAL where errno says nothing to a user); the
 * message is "<what you were doing>: <strerror>". Call it while errno is still right.
 */
int error_sys(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* As error_sys(), with the code given. */
int error_sys_as(struct error *err, enum error_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "<text>: " in front of the message that is there. Returns -1, like the setters. */
int error_prefix(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "SANDBOX_NOT_FOUND", 404 and 3 for ERROR_SANDBOX_NOT_FOUND; INTERNAL's row for strangers. */
const char *error_name(enum error_code code);
int error_http_status(enum error_code code);
int error_exit_status(enum error_code code);
enum error_category error_category(enum error_code code);
/* "client", "container", "execution", "system" */
const char *error_category_name(enum error_category category);

/* Whether a number is in the list: one that came from another process may be from another release.
 */
bool error_known(uint64_t number);

/* The code with that name; ERROR_INTERNAL when there is none. */
enum error_code error_from_name(const char *name);
enum error_code error_from_errno(int sys);
