/* SPDX-License-Identifier: Apache-2.0 */

/* What proxies say of who asks. The input is a value of X-Forwarded-For up to the first line break,
 * and one of Forwarded behind it. Whatever it is, nobody becomes a program of this machine, and who
 * is found can be counted. */

#include "api/forwarded.h"

#include <stdlib.h>
#include <string.h>

#include "auth/throttle.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct peer_address uncounted;
    struct proxies proxies = {.count = 0};
    _cleanup_free_ char *text = malloc(size + 1);
    if (text == NULL || proxies_add(&proxies, "10.0.0.0/8,2001:db8::/32", NULL) < 0)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    char *second = strchr(text, '\n');
    if (second != NULL)
        *second++ = '\0';
    const struct http_header headers[] = {{"X-Forwarded-For", text}, {"Forwarded", second}};
    struct arena *arena = arena_new();
    const char *peer =
        forwarded_peer(arena, &proxies, "10.0.0.1:9", headers, second != NULL ? 2 : 1);
    if (peer_is_local(peer) || peer_address_eq(peer_address(peer), uncounted) || strlen(peer) > 60)
        abort();
    arena_free(arena);
    return 0;
}
