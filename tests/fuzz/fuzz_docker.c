/* SPDX-License-Identifier: Apache-2.0 */

/* Amounts in Docker's notation: whatever the text, no crash; what is accepted obeys the header, and
 * what is written can be read. */

#include "api/aisandbox/docker_units.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool parse(const char *text, int (*read)(const char *, uint64_t *, struct error *),
                  uint64_t *ret)
{
    const uint64_t untouched = 0xfeedfacefeedface;
    struct error err = {.code = ERROR_NONE};
    *ret = untouched;
    if (read(text, ret, &err) < 0) {
        if (err.code != ERROR_INVALID_QUANTITY || *ret != untouched || err.message[0] == '\0')
            abort();
        return false;
    }
    if (*ret > INT64_MAX || text[0] < '0' || text[0] > '9')
        abort();
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = malloc(size + 1);
    uint64_t value, again;
    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    struct arena *arena = arena_new();
    if (parse(text, docker_memory, &value) && value < UINT64_C(1) << 60) {
        if (!parse(docker_memory_text(value, arena), docker_memory, &again) || again < value ||
            again - value > value / 50)
            abort();
    }
    if (parse(text, docker_cpus, &value))
        (void)parse(docker_cpus_text((double)value / 1000, arena), docker_cpus, &again);
    arena_free(arena);
    return 0;
}
