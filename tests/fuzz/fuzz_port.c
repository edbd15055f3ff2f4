/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What strangers say about ports: Host fields, and cookies both ways. A name that is taken for a
 * port's is written in one way only; no cookie of ours comes through, and what has come through
 * once comes through unchanged.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/cookie.h"
#include "api/port_host.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void check_host(const char *text)
{
    struct port_host host, again;
    char name[64];
    if (!port_host_parse(text, "boxes.example", &host))
        return;
    int len = snprintf(name, sizeof(name), "%u-%s.boxes.example", host.port, host.sandbox_id);
    require(host.port != 0 && strlen(host.sandbox_id) == SANDBOX_ID_LEN);
    require(strncasecmp(text, name, (size_t)len) == 0);
    require(port_host_parse(name, "boxes.example", &again) && again.port == host.port);
}

static void check_cookies(struct arena *arena, const char *text)
{
    const char *out = cookie_for_program(arena, text), *in = cookie_from_program(arena, text);
    if (out != NULL) {
        require(cookie_get(arena, out, COOKIE_PREVIEW) == NULL);
        require(cookie_get(arena, out, COOKIE_PORT_PREFIX "1_x") == NULL);
        const char *again = cookie_for_program(arena, out);
        require(again != NULL && strcmp(again, out) == 0);
    }
    if (in != NULL) {
        const char *again = cookie_from_program(arena, in);
        require(again != NULL && strcmp(again, in) == 0);
        require(strncmp(in, COOKIE_PREVIEW "=", sizeof(COOKIE_PREVIEW)) != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    const char *text = arena_dup(arena, data, size);
    check_host(text);
    check_cookies(arena, text);
    arena_free(arena);
    return 0;
}
