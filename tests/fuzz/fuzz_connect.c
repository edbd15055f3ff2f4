/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What E2B's clients send before anything is known of them: a stream's envelope, and the JSON of a
 * new sandbox (what is kept of it comes out as it went in).
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/connect/frame.h"
#include "api/e2b/sandbox_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static void try_create(struct arena *arena, struct slice text)
{
    struct e2b_create_request request;
    struct e2b_spec kept;
    yyjson_val *root;
    struct error err = {0};
    if (json_parse(arena, text, &root, NULL) < 0 || !yyjson_is_obj(root))
        return;
    if (e2b_create_from_json(arena, root, &request, &err) < 0) {
        CHECK(err.code != ERROR_NONE && err.message[0] != '\0');
        return;
    }
    e2b_spec_read(arena, e2b_spec_text(arena, &request.spec), &kept);
    CHECK(strcmp(kept.template_id, request.spec.template_id) == 0);
    CHECK(kept.secure == request.spec.secure && kept.internet == request.spec.internet);
    CHECK(kept.timeout_s == request.lifespan.ttl_s && kept.timeout_s > 0);
    CHECK(yyjson_obj_size(kept.metadata) == yyjson_obj_size(request.spec.metadata));
    CHECK(kept.snapshot == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct slice body = {(const char *)data, size}, message;
    struct error err = {0};
    if (connect_frame_take(body, &message, &err) == 0) {
        CHECK(message.len + CONNECT_HEADER_SIZE == size);
        try_create(arena, (struct slice){arena_dup(arena, message.data, message.len), message.len});
    } else {
        CHECK(err.code == ERROR_INVALID_ARGUMENT);
        try_create(arena, (struct slice){arena_dup(arena, body.data, body.len), body.len});
    }
    size_t len;
    if (size >= CONNECT_HEADER_SIZE && connect_frame_head(body.data, 1 << 20, &len, &err) == 0)
        CHECK(data[0] == 0 && len <= 1 << 20);
    arena_free(arena);
    return 0;
}
