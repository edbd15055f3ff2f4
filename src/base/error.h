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
 * X(code, HTTP status, CLI exit status).
 */

#include <stdarg.h>

#define ERROR_CODES(X)                                                                             \
    X(INTERNAL, 500, 1)                                                                            \
    X(INVALID_ARGUMENT, 400, 2)                                                                    \
    X(INVALID_JSON, 400, 2)                                                                        \
    X(UNKNOWN_FIELD, 400, 2)                                                                       \
    X(INVALID_NAME, 400, 2)                                                                        \
    X(INVALID_QUANTITY, 400, 2)                                                                    \
    X(INVALID_DURATION, 400, 2)                                                                    \
    X(INVALID_PATH, 400, 2)                                                                        \
    X(INVALID_MULTIPART, 400, 2)                                                                   \
    X(INVALID_HTTP, 400, 1)                                                                        \
    X(CONFLICTING_CREDENTIALS, 400, 2)                                                             \
    X(UNAUTHORIZED, 401, 5)                                                                        \
    X(FORBIDDEN, 403, 5)                                                                           \
    X(PERMISSION_DENIED, 403, 5)                                                                   \
    X(CALLBACK_REFUSED, 403, 5)                                                                    \
    X(SHELL_NOT_ALLOWED, 403, 5)                                                                   \
    X(ROUTE_NOT_FOUND, 404, 1)                                                                     \
    X(SANDBOX_NOT_FOUND, 404, 3)                                                                   \
    X(GROUP_NOT_FOUND, 404, 3)                                                                     \
    X(WORKSPACE_NOT_FOUND, 404, 3)                                                                 \
    X(KEY_NOT_FOUND, 404, 3)                                                                       \
    X(FILE_NOT_FOUND, 404, 3)                                                                      \
    X(UPLOAD_NOT_FOUND, 404, 3)                                                                    \
    X(PROCESS_NOT_FOUND, 404, 3)                                                                   \
    X(MONITOR_NOT_FOUND, 404, 3)                                                                   \
    X(IMAGE_NOT_FOUND, 404, 3)                                                                     \
    X(PREVIEW_NOT_FOUND, 404, 3)                                                                   \
    X(TOKEN_NOT_FOUND, 404, 3)                                                                     \
    X(TERMINAL_NOT_FOUND, 404, 3)                                                                  \
    X(POOL_NOT_FOUND, 404, 3)                                                                      \
    X(SECRET_NOT_FOUND, 404, 3)                                                                    \
    X(METHOD_NOT_ALLOWED, 405, 1)                                                                  \
    X(REQUEST_TIMEOUT, 408, 6)                                                                     \
    X(ALREADY_EXISTS, 409, 4)                                                                      \
    X(ALREADY_RUNNING, 409, 4)                                                                     \
    X(SANDBOX_EXPIRED, 409, 4)                                                                     \
    X(NOT_RUNNING, 409, 4)                                                                         \
    X(IS_A_DIRECTORY, 409, 4)                                                                      \
    X(NOT_A_DIRECTORY, 409, 4)                                                                     \
    X(NOT_A_FILE, 409, 4)                                                                          \
    X(DIRECTORY_NOT_EMPTY, 409, 4)                                                                 \
    X(WORKSPACE_NOT_EMPTY, 409, 4)                                                                 \
    X(CONFLICT, 409, 4)                                                                            \
    X(NO_STDIN, 409, 4)                                                                            \
    X(STDIN_CLOSED, 409, 4)                                                                        \
    X(RESOURCE_IN_USE, 409, 4)                                                                     \
    X(INSUFFICIENT_RESOURCES, 409, 7)                                                              \
    X(REVISION_CONFLICT, 409, 4)                                                                   \
    X(REVISION_MISMATCH, 412, 4)                                                                   \
    X(LENGTH_REQUIRED, 411, 1)                                                                     \
    X(PAYLOAD_TOO_LARGE, 413, 7)                                                                   \
    X(URI_TOO_LONG, 414, 7)                                                                        \
    X(UNSUPPORTED_MEDIA_TYPE, 415, 2)                                                              \
    X(RANGE_NOT_SATISFIABLE, 416, 2)                                                               \
    X(EXPECTATION_FAILED, 417, 1)                                                                  \
    X(WAIT_TIMEOUT, 422, 6)                                                                        \
    X(UPGRADE_REQUIRED, 426, 2)                                                                    \
    X(LIMIT_EXCEEDED, 429, 7)                                                                      \
    X(TOO_MANY_ATTEMPTS, 429, 7)                                                                   \
    X(HEADERS_TOO_LARGE, 431, 7)                                                                   \
    X(NOT_IMPLEMENTED, 501, 1)                                                                     \
    X(PORT_NOT_LISTENING, 502, 6)                                                                  \
    X(UPSTREAM_FAILED, 502, 6)                                                                     \
    X(UNAVAILABLE, 503, 6)                                                                         \
    X(TIMEOUT, 504, 6)                                                                             \
    X(HTTP_VERSION, 505, 1)                                                                        \
    X(QUOTA_EXCEEDED, 507, 7)                                                                      \
    X(CANCELLED, 499, 6)                                                                           \
    X(NETWORK_REFUSED, 403, 5)                                                                     \
    X(NETWORK_UNAVAILABLE, 503, 6)                                                                 \
    X(PORT_NOT_PUBLISHED, 404, 3)                                                                  \
    X(PORT_IN_USE, 409, 4)                                                                         \
    X(CODE_LANGUAGE_UNKNOWN, 400, 2)                                                               \
    X(CODE_CONTEXT_NOT_FOUND, 404, 3)                                                              \
    X(CODE_INTERPRETER_MISSING, 409, 4)                                                            \
    X(CODE_KERNEL_FAILED, 502, 6)                                                                  \
    X(WATCHER_NOT_FOUND, 404, 3)                                                                   \
    X(SNAPSHOT_NOT_FOUND, 404, 3)                                                                  \
    X(CODE_INTERPRETER_UNFIT, 409, 4)                                                              \
    X(EXECUTION_NOT_FOUND, 404, 3)                                                                 \
    X(HISTORY_DISABLED, 409, 4)                                                                    \
    X(ROLLBACK_BLOCKED, 409, 4)                                                                    \
    X(CONTAINER_CREATION_FAILED, 422, 4)                                                           \
    X(CONTAINER_START_FAILED, 503, 6)                                                              \
    X(EXECUTION_FAILED, 422, 1)                                                                    \
    X(EXECUTION_TIMEOUT, 422, 6)                                                                   \
    X(EXECUTION_OUT_OF_MEMORY, 422, 7)                                                             \
    X(RATE_LIMITED, 429, 7)                                                                        \
    X(TOO_MANY_STREAMS, 429, 7)                                                                    \
    X(TOO_MANY_SANDBOXES, 429, 7)                                                                  \
    X(AUDIT_UNAVAILABLE, 503, 6)

enum error_code {
    ERROR_NONE = 0,
#define X(code, http, exit) ERROR_##code,
    ERROR_CODES(X)
#undef X
        ERROR_CODE_COUNT
};

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

/* The code with that name; ERROR_INTERNAL when there is none. */
enum error_code error_from_name(const char *name);
enum error_code error_from_errno(int sys);
