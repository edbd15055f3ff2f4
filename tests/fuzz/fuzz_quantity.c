/* SPDX-License-Identifier: Apache-2.0 */

/* Quantities and lengths of time: whatever the text, no crash; and what is accepted obeys the
 * header. */

#include "base/quantity.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text, int (*parse)(const char *, uint64_t *, struct error *),
                  enum error_code refusal)
{
    const uint64_t untouched = 0xfeedfacefeedface;
    uint64_t value = untouched;
    struct error err = {.code = ERROR_NONE};
    if (parse(text, &value, &err) < 0) {
        if (err.code != refusal || value != untouched || err.message[0] == '\0')
            abort();
        return;
    }
    if (value > INT64_MAX || strpbrk(text, "- \t\n") == text)
        abort();
}

static int parse_share(const char *text, uint64_t *ret_value, struct error *err)
{
    const uint64_t whole = UINT64_C(1) << 60;
    uint64_t value;
    if (quantity_share(text, whole, &value, err) < 0)
        return -1;
    if (value > whole || !quantity_is_share(text))
        abort();
    *ret_value = value;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    check(text, quantity_cpu, ERROR_INVALID_QUANTITY);
    check(text, quantity_bytes, ERROR_INVALID_QUANTITY);
    check(text, quantity_count, ERROR_INVALID_QUANTITY);
    check(text, parse_share, ERROR_INVALID_QUANTITY);
    check(text, duration_seconds, ERROR_INVALID_ARGUMENT);
    return 0;
}
