/* SPDX-License-Identifier: Apache-2.0 */

/* What can be wrong about a command's limits without looking at the sandbox. A limit of nothing at
 * all is a slip, not a wish. */

#include "api/v0/limits_json.h"

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/quantity.h"

struct limits {
    const char *memory;
    const char *output;
    int64_t timeout_s;
    int64_t processes;
    int64_t open_files;
};

static const struct json_field fields[] = {
    {"memory", JSON_SCALAR_TEXT, .offset = offsetof(struct limits, memory)},
    {"timeout", JSON_INT, .offset = offsetof(struct limits, timeout_s), .min = 1, .max = INT32_MAX},
    {"processes", JSON_INT, .offset = offsetof(struct limits, processes), .min = 1,
     .max = INT32_MAX},
    {"output", JSON_SCALAR_TEXT, .offset = offsetof(struct limits, output)},
    {"openFiles", JSON_INT, .offset = offsetof(struct limits, open_files),
     .min = COMMAND_OPEN_FILES_MIN, .max = INT32_MAX},
};

static int read_bytes(const char *text, uint64_t min, const char *range, const char *where,
                      const char *field, uint64_t *ret_bytes, struct error *err)
{
    uint64_t bytes = 0;
    if (text == NULL)
        return 0;
    if (quantity_bytes(text, &bytes, err) < 0)
        return error_prefix(err, "%s.%s", where, field);
    if (bytes < min)
        return error_set(err, ERROR_INVALID_QUANTITY, "%s.%s: \"%.40s\" is not %s", where, field,
                         text, range);
    *ret_bytes = bytes;
    return 0;
}

int command_limits_from_json(struct arena *arena, yyjson_val *object, const char *where,
                             struct command_limits *ret_limits, struct error *err)
{
    struct limits given = {0};
    struct command_limits limits = {0};
    if (object != NULL &&
        (json_read(arena, object, where, fields, ARRAY_LEN(fields), &given, err) < 0 ||
         read_bytes(given.memory, COMMAND_MEMORY_MIN, "at least 4Mi", where, "memory",
                    &limits.memory_bytes, err) < 0 ||
         read_bytes(given.output, 1, "at least one byte", where, "output", &limits.output_bytes,
                    err) < 0))
        return -1;
    limits.time_ms = (uint64_t)given.timeout_s * 1000;
    limits.processes = (uint64_t)given.processes;
    limits.open_files = (uint64_t)given.open_files;
    *ret_limits = limits;
    return 0;
}
