/* SPDX-License-Identifier: Apache-2.0 */

/* Times as text: whatever it is, no crash; and what is accepted is written as the same second. */

#include "base/timetext.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = malloc(size + 1);
    struct error err = {.code = ERROR_NONE};
    int64_t ms = 1, again;
    char out[TIME_TEXT_SIZE];
    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    if (time_parse_rfc3339(text, &ms, &err) < 0) {
        if (err.code != ERROR_INVALID_ARGUMENT || ms != 1 || err.message[0] == '\0')
            abort();
        return 0;
    }
    time_rfc3339(ms, out);
    /* A zone can carry the first and the last hours of what four digits hold out of it. */
    if (strlen(out) == 20 && out[0] != '-' &&
        (time_parse_rfc3339(out, &again, &err) < 0 || ms - again < 0 || ms - again > 999))
        abort();
    return 0;
}
