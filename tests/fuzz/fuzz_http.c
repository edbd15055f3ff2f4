/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A connection's bytes, as the server reads them: head after head, bodies in between, until
 * something is rejected. The first byte says in which steps the bytes arrive; what is understood
 * must not depend on it. Whatever is accepted must keep the promises of the headers.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "http/chunk.h"
#include "http/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct http_limits limits = {.headers_max = 4096, .target_max = 512};

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static void check_text(const char *text)
{
    CHECK(text != NULL && text[strcspn(text, "\r\n")] == '\0');
}

static void check_request(const struct request_head *head)
{
    const struct http_request *r = &head->request;
    check_text(r->method);
    check_text(r->target);
    check_text(r->path);
    check_text(r->query);
    check_text(r->host);
    CHECK(r->path[0] == '/' || strcmp(r->path, "*") == 0);
    CHECK(strchr(r->path, '?') == NULL && strchr(r->target, ' ') == NULL);
    CHECK(r->content_length >= -1 && head->chunked == (r->content_length == -1));
    CHECK(!head->http10 || (head->close && !head->chunked));
    for (size_t i = 0; i < r->header_count; i++) {
        check_text(r->headers[i].name);
        check_text(r->headers[i].value);
        CHECK(r->headers[i].name[0] != '\0' && strpbrk(r->headers[i].name, " \t:") == NULL);
    }
}

/* How many bytes the chunked body takes; SIZE_MAX: malformed, or not whole. */
static size_t take_chunks(const char *in, size_t len, size_t step)
{
    struct chunk_decoder d = {0};
    size_t at = 0, have = 0;
    for (;;) {
        size_t used = 0;
        enum chunk_step next = chunk_decode(&d, in + at, have - at, &used, NULL);
        if (next == CHUNK_BAD)
            return SIZE_MAX;
        CHECK(used <= have - at);
        at += used;
        if (next == CHUNK_END)
            return at;
        if (next == CHUNK_DATA && have > at) {
            CHECK(d.left > 0);
            size_t n = have - at < d.left ? have - at : (size_t)d.left;
            at += n;
            chunk_took(&d, n);
        } else if (have == len)
            return SIZE_MAX;
        else
            have = have + step < len ? have + step : len;
    }
}

static enum head_state scan(const char *in, size_t len, size_t step, struct head_scan *ret_scan)
{
    struct head_scan s = {0};
    enum head_state state = HEAD_PARTIAL;
    for (size_t have = 0; have < len && state == HEAD_PARTIAL;) {
        have = have + step < len ? have + step : len;
        state = head_scan(&s, in, have, &limits, NULL);
    }
    *ret_scan = s;
    return state;
}

/* One request; how many bytes it takes, 0 when there is nothing more to read. */
static size_t take_request(struct arena *arena, const char *in, size_t len, size_t step)
{
    struct head_scan s, whole;
    struct request_head head;
    struct error err;
    enum head_state state = scan(in, len, step, &s);
    CHECK(state == scan(in, len, len, &whole));
    if (state != HEAD_WHOLE)
        return 0;
    CHECK(s.at == whole.at && s.start == whole.start && s.at <= len && s.start < s.at);
    if (request_parse(arena, in + s.start, s.at - s.start, &head, &err) != 0) {
        CHECK(err.code != ERROR_NONE && err.message[0] != '\0');
        return 0;
    }
    check_request(&head);
    size_t left = len - s.at;
    if (head.chunked) {
        size_t body = take_chunks(in + s.at, left, step);
        CHECK(body == take_chunks(in + s.at, left, left + 1));
        return body == SIZE_MAX ? 0 : s.at + body;
    }
    if ((uint64_t)head.request.content_length > left)
        return 0;
    return s.at + (size_t)head.request.content_length;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t step = (size_t)data[0] + 1, at = 1, took;
    struct arena *arena = arena_new();
    do {
        took = at < size ? take_request(arena, (const char *)data + at, size - at, step) : 0;
        at += took;
    } while (took > 0);
    struct answer_head answer;
    struct head_scan s;
    if (scan((const char *)data + 1, size - 1, step, &s) == HEAD_WHOLE)
        answer_parse(arena, (const char *)data + 1 + s.start, s.at - s.start, &answer, NULL);
    arena_free(arena);
    return 0;
}
