/* SPDX-License-Identifier: Apache-2.0 */

/* Range fields: whatever the text and the size, a part is inside the content and not empty. */

#include "http/range.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text, uint64_t size)
{
    struct http_range range = {UINT64_MAX, UINT64_MAX};
    switch (http_range_parse(text, size, &range)) {
    case HTTP_RANGE_PART:
        if (range.length == 0 || range.offset >= size || range.length > size - range.offset)
            abort();
        break;
    case HTTP_RANGE_NONE:
    case HTTP_RANGE_UNSATISFIABLE:
        if (range.offset != UINT64_MAX || range.length != UINT64_MAX)
            abort();
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t sizes[] = {0, 1, 10, 4096, INT64_MAX, UINT64_MAX};
    _cleanup_free_ char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        check(text, sizes[i]);
    return 0;
}
