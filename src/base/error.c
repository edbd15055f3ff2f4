/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The table that turns an error code into a name, an HTTP status and an exit status, and the
 * one that turns errno into an error code. Whoever wonders "what makes NOT_FOUND a 404?" is
 * in the right file: ERROR_CODES in error.h is the list, this file only reads it.
 */

#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct code_row {
    const char *name;
    int http;
    int exit;
};

static const struct code_row code_rows[ERROR_NUMBERS] = {[ERROR_NONE] = {"NONE", 200, 0},
#define X(code, number, http, exit) [ERROR_##code] = {#code, http, exit},
                                                         ERROR_CODES(X)
#undef X
};

/* A number that two codes have does not compile. */
bool error_known(uint64_t number)
{
    switch (number) {
#define X(code, number, http, exit) case ERROR_##code:
        ERROR_CODES(X)
#undef X
        return true;
    default:
        return false;
    }
}

static const struct {
    int sys;
    enum error_code code;
} errno_rows[] = {
    {ENOENT, ERROR_FILE_NOT_FOUND},   {EACCES, ERROR_PERMISSION_DENIED},
    {EPERM, ERROR_PERMISSION_DENIED}, {EROFS, ERROR_PERMISSION_DENIED},
    {EEXIST, ERROR_ALREADY_EXISTS},   {EISDIR, ERROR_IS_A_DIRECTORY},
    {ENOTDIR, ERROR_NOT_A_DIRECTORY}, {ENOTEMPTY, ERROR_DIRECTORY_NOT_EMPTY},
    {EDQUOT, ERROR_QUOTA_EXCEEDED},   {ENOSPC, ERROR_QUOTA_EXCEEDED},
    {EFBIG, ERROR_QUOTA_EXCEEDED},    {ENAMETOOLONG, ERROR_INVALID_PATH},
    {ELOOP, ERROR_INVALID_PATH},      {EBUSY, ERROR_CONFLICT},
    {ETIMEDOUT, ERROR_TIMEOUT},       {EAGAIN, ERROR_LIMIT_EXCEEDED},
    {EMFILE, ERROR_LIMIT_EXCEEDED},   {ENFILE, ERROR_LIMIT_EXCEEDED},
    {ENOMEM, ERROR_LIMIT_EXCEEDED},   {ECONNREFUSED, ERROR_UNAVAILABLE},
    {ECONNRESET, ERROR_UNAVAILABLE},  {EPIPE, ERROR_UNAVAILABLE},
};

static const struct code_row *code_row(enum error_code code)
{
    if (code != ERROR_NONE && !error_known((unsigned)code))
        code = ERROR_INTERNAL;
    return &code_rows[code];
}

const char *error_name(enum error_code code)
{
    return code_row(code)->name;
}

int error_http_status(enum error_code code)
{
    return code_row(code)->http;
}

int error_exit_status(enum error_code code)
{
    return code_row(code)->exit;
}

/* Those whose category is not what their status says. */
static const struct {
    enum error_code code;
    enum error_category category;
} category_rows[] = {
    {ERROR_SANDBOX_NOT_FOUND, CATEGORY_CONTAINER},
    {ERROR_SANDBOX_EXPIRED, CATEGORY_CONTAINER},
    {ERROR_IMAGE_NOT_FOUND, CATEGORY_CONTAINER},
    {ERROR_SNAPSHOT_NOT_FOUND, CATEGORY_CONTAINER},
    {ERROR_NOT_RUNNING, CATEGORY_CONTAINER},
    {ERROR_ALREADY_RUNNING, CATEGORY_CONTAINER},
    {ERROR_AGENT_INCOMPATIBLE, CATEGORY_CONTAINER},
    {ERROR_QUOTA_EXCEEDED, CATEGORY_CONTAINER},
    {ERROR_CONTAINER_CREATION_FAILED, CATEGORY_CONTAINER},
    {ERROR_CONTAINER_START_FAILED, CATEGORY_CONTAINER},
    {ERROR_EXECUTION_FAILED, CATEGORY_EXECUTION},
    {ERROR_EXECUTION_TIMEOUT, CATEGORY_EXECUTION},
    {ERROR_EXECUTION_OUT_OF_MEMORY, CATEGORY_EXECUTION},
    {ERROR_WAIT_TIMEOUT, CATEGORY_EXECUTION},
    {ERROR_PORT_NOT_LISTENING, CATEGORY_EXECUTION},
    {ERROR_UPSTREAM_FAILED, CATEGORY_EXECUTION},
    {ERROR_CODE_INTERPRETER_MISSING, CATEGORY_EXECUTION},
    {ERROR_CODE_INTERPRETER_UNFIT, CATEGORY_EXECUTION},
    {ERROR_CODE_KERNEL_FAILED, CATEGORY_EXECUTION},
    {ERROR_INSUFFICIENT_RESOURCES, CATEGORY_SYSTEM},
    {ERROR_NOT_IMPLEMENTED, CATEGORY_CLIENT},
    {ERROR_HTTP_VERSION, CATEGORY_CLIENT},
};

enum error_category error_category(enum error_code code)
{
    for (size_t i = 0; i < sizeof(category_rows) / sizeof(category_rows[0]); i++)
        if (category_rows[i].code == code)
            return category_rows[i].category;
    return error_http_status(code) < 500 ? CATEGORY_CLIENT : CATEGORY_SYSTEM;
}

const char *error_category_name(enum error_category category)
{
    static const char *const names[] = {
        [CATEGORY_CLIENT] = "client",
        [CATEGORY_CONTAINER] = "container",
        [CATEGORY_EXECUTION] = "execution",
        [CATEGORY_SYSTEM] = "system",
    };
    return names[category];
}

enum error_code error_from_name(const char *name)
{
    for (unsigned i = 0; i < ERROR_NUMBERS; i++)
        if (code_rows[i].name != NULL && strcmp(code_rows[i].name, name) == 0)
            return (enum error_code)i;
    return ERROR_INTERNAL;
}

enum error_code error_from_errno(int sys)
{
    for (size_t i = 0; i < sizeof(errno_rows) / sizeof(errno_rows[0]); i++)
        if (errno_rows[i].sys == sys)
            return errno_rows[i].code;
    return ERROR_INTERNAL;
}

static void set(struct error *err, enum error_code code, int sys, const char *fmt, va_list args)
{
    err->code = code;
    err->sys = sys;
    vsnprintf(err->message, sizeof(err->message), fmt, args);
    if (sys == 0)
        return;
    size_t used = strlen(err->message);
    snprintf(err->message + used, sizeof(err->message) - used, ": %s", strerror(sys));
}

int error_set(struct error *err, enum error_code code, const char *fmt, ...)
{
    if (err == NULL)
        return -1;
    va_list args;
    va_start(args, fmt);
    set(err, code, 0, fmt, args);
    va_end(args);
    return -1;
}

int error_sys(struct error *err, const char *fmt, ...)
{
    int sys = errno;
    if (err == NULL)
        return -1;
    va_list args;
    va_start(args, fmt);
    set(err, error_from_errno(sys), sys, fmt, args);
    va_end(args);
    return -1;
}

int error_sys_as(struct error *err, enum error_code code, const char *fmt, ...)
{
    int sys = errno;
    if (err == NULL)
        return -1;
    va_list args;
    va_start(args, fmt);
    set(err, code, sys, fmt, args);
    va_end(args);
    return -1;
}

int error_prefix(struct error *err, const char *fmt, ...)
{
    if (err == NULL)
        return -1;
    char text[ERROR_MESSAGE_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    size_t used = strlen(text);
    snprintf(text + used, sizeof(text) - used, ": %s", err->message);
    memcpy(err->message, text, sizeof(text));
    return -1;
}
