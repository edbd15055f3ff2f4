/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a client's name for an image to ours. Clients of other products send the names they know;
 * each is a row here, and what it maps to has to be good enough for what that client does next.
 */

#include "image/image.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"

#define HOST "host"

static const struct {
    const char *reference;
    const char *image;
    bool tagged; /* with any tag behind it: which version is there is not for the name to say */
} aliases[] = {
    {"", HOST},
    {HOST, HOST},
    {"base", HOST},
    {"code-interpreter-v1", HOST},
    {"code-interpreter", HOST},
    {"mcp-gateway", HOST},
    {"@ai-sandbox/python", HOST, true},
    {"@ai-sandbox/node", HOST, true},
    {"python", HOST, true},
    {"node", HOST, true},
    {"blaxel/base-image:latest", HOST},
    {"blaxel/prod-base:latest", HOST},
};

enum {
    QUOTED_MAX = 100, /* bytes of the reference in the message */
    TAG_MAX = 128,
    LIST_MAX = 256,
};

/* As registries have them: letters, digits and '_', later also '.' and '-'. */
static bool is_tag(const char *text)
{
    size_t len = 0;
    for (; text[len] != '\0'; len++)
        if (!isalnum((unsigned char)text[len]) && text[len] != '_' &&
            (len == 0 || (text[len] != '.' && text[len] != '-')))
            return false;
    return len > 0 && len <= TAG_MAX;
}

static bool fits(size_t row, const char *reference)
{
    size_t len = strlen(aliases[row].reference);
    if (strncmp(reference, aliases[row].reference, len) != 0)
        return false;
    return reference[len] == '\0' ||
           (aliases[row].tagged && reference[len] == ':' && is_tag(reference + len + 1));
}

int image_resolve(const char *reference, const char **ret_image, struct error *err)
{
    if (reference == NULL)
        reference = "";
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        if (fits(i, reference)) {
            *ret_image = aliases[i].image;
            return 0;
        }

    _cleanup_buf_ struct buf list = BUF_INIT(LIST_MAX);
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        if (aliases[i].reference[0] != '\0')
            buf_addf(&list, "%s%s%s", list.len == 0 ? "" : ", ", aliases[i].reference,
                     aliases[i].tagged ? "[:tag]" : "");
    return error_set(err, ERROR_IMAGE_NOT_FOUND, "no image \"%.*s\" here; there are: %s",
                     QUOTED_MAX, reference, list.data);
}
