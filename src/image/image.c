/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a client's name for an image to ours. Clients of other products send the names they know;
 * each is a row here, and what it maps to has to be good enough for what that client does next.
 */

#include "image/image.h"

#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define HOST "host"

static const struct {
    const char *reference;
    const char *image;
} aliases[] = {
    {"", HOST},
    {HOST, HOST},
    {"base", HOST},
    {"code-interpreter-v1", HOST},
    {"code-interpreter", HOST},
    {"mcp-gateway", HOST},
    {"@ai-sandbox/python", HOST},
    {"blaxel/base-image:latest", HOST},
    {"blaxel/prod-base:latest", HOST},
};

enum {
    QUOTED_MAX = 100, /* bytes of the reference in the message */
    LIST_MAX = 256,
};

int image_resolve(const char *reference, const char **ret_image, struct error *err)
{
    if (reference == NULL)
        reference = "";
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        if (strcmp(reference, aliases[i].reference) == 0) {
            *ret_image = aliases[i].image;
            return 0;
        }

    _cleanup_buf_ struct buf list = BUF_INIT(LIST_MAX);
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        if (aliases[i].reference[0] != '\0')
            buf_addf(&list, "%s%s", list.len == 0 ? "" : ", ", aliases[i].reference);
    return error_set(err, ERROR_IMAGE_NOT_FOUND, "no image \"%.*s\" here; there are: %s",
                     QUOTED_MAX, reference, list.data);
}
