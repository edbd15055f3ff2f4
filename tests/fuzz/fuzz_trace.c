/* SPDX-License-Identifier: Apache-2.0 */

/* traceparent and tracestate, parted by a line break: what is taken is written as it can be read
 * again, and never more than is passed on. */

#include "observe/trace_context.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_free_ char *text = malloc(size + 1);
    struct errand errand = {0}, again = {0};
    char parent[TRACEPARENT_LEN + 1];
    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    char *state = strchr(text, '\n');
    if (state != NULL)
        *state++ = '\0';
    if (trace_parent_parse(text, &errand)) {
        trace_parent_text(&errand, parent);
        if (!trace_parent_parse(parent, &again) || memcmp(&errand, &again, sizeof(errand)) != 0)
            abort();
    }
    bool right = state != NULL && trace_state_add(state, &errand);
    if (strlen(errand.tracestate) != errand.tracestate_len ||
        errand.tracestate_len > TRACESTATE_MAX)
        abort();
    if (!right && errand.tracestate_len > 0)
        abort();
    if (right && (!trace_state_add(errand.tracestate, &again) ||
                  strcmp(again.tracestate, errand.tracestate) != 0))
        abort();
    return 0;
}
