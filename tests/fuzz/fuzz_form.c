/* SPDX-License-Identifier: Apache-2.0 */

/*
 * multipart/form-data from a stranger: a step, a Content-Type up to the first LF, the body. In
 * whatever steps the body arrives, the same parts come out, and no byte is handed out twice.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

struct outcome {
    unsigned parts;
    unsigned ended;
    enum error_code code;
    uint32_t hash;
    size_t content;
};

static void check_text(const char *text)
{
    CHECK(text == NULL || text[strcspn(text, "\r\n")] == '\0');
}

static void check_part(struct outcome *o, const struct form_part *part)
{
    CHECK(part->name != NULL);
    check_text(part->name);
    check_text(part->filename);
    check_text(part->content_type);
    o->hash = o->hash * 31 + (uint32_t)strlen(part->name);
}

static struct outcome decode(const char *type, const char *body, size_t len, size_t step)
{
    struct outcome o = {0};
    struct form_decoder d;
    struct error err = {0};
    if (form_decoder_init(&d, type, &err) != 0) {
        o.code = err.code;
        return o;
    }
    struct arena *arena = arena_new();
    size_t at = 0, have = 0;
    for (;;) {
        size_t used = 0;
        struct form_part part;
        enum form_step next = form_decode(&d, body + at, have - at, have == len, &used, &err);
        CHECK(used <= have - at);
        if (next == FORM_PART && form_part_parse(arena, body + at, used, &part, &err) != 0)
            next = FORM_BAD;
        else if (next == FORM_PART) {
            o.parts++;
            check_part(&o, &part);
        } else if (next == FORM_DATA) {
            CHECK(used > 0);
            for (size_t i = 0; i < used; i++)
                o.hash = o.hash * 31 + (uint8_t)body[at + i];
            o.content += used;
        }
        o.ended += next == FORM_PART_END;
        at += used;
        if (next == FORM_BAD || next == FORM_END) {
            o.code = next == FORM_BAD ? err.code : ERROR_NONE;
            break;
        }
        if (next == FORM_MORE && used == 0) {
            CHECK(have < len);
            have = have + step < len ? have + step : len;
        }
    }
    CHECK(o.content <= len && o.ended <= o.parts && (o.code != ERROR_NONE || o.ended == o.parts));
    arena_free(arena);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size < 2 ? NULL : memchr(data + 1, '\n', size - 1);
    if (end == NULL)
        return 0;
    size_t type_len = (size_t)(end - data - 1), len = size - type_len - 2;
    char *type = calloc(1, type_len + 1), *body = malloc(len + (len == 0));
    memcpy(type, data + 1, type_len);
    memcpy(body, end + 1, len);
    struct outcome a = decode(type, body, len, (size_t)data[0] + 1);
    struct outcome b = decode(type, body, len, len + 1);
    CHECK(a.code == b.code && a.parts == b.parts && a.hash == b.hash && a.content == b.content);
    free(type);
    free(body);
    return 0;
}
