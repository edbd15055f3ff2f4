/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Heads of requests that get a secret, and of answers to them. Whatever the sandbox sends, the host
 * is sent one request that any strict parser reads the same way, for the right host and with the
 * secret once; whatever the host sends, the sandbox gets no secret.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "egress/inject_head.h"
#include "egress/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOST   "api.example"
#define SECRET "sk-secret-1"
#define VALUE  "Bearer " SECRET

static const struct http_limits limits = {.headers_max = 64 * 1024, .target_max = 16 * 1024};

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

static struct slice whole_head(const char *data, size_t len)
{
    struct head_scan scan = {0};
    struct error err;
    if (head_scan(&scan, data, len, &limits, &err) != HEAD_WHOLE)
        return (struct slice){NULL, 0};
    return (struct slice){data + scan.start, scan.at - scan.start};
}

static void check_written(struct arena *arena, const struct buf *out)
{
    struct request_head again;
    struct error err;
    size_t secrets = 0;
    struct slice head = whole_head(out->data, out->len);
    if (head.data == NULL) /* what is added may take it over a limit, and nothing else */
        return;
    CHECK(head.len == out->len);
    if (request_parse(arena, head.data, head.len, &again, &err) < 0)
        return;
    CHECK(strcmp(again.request.host, HOST) == 0);
    for (size_t i = 0; i < again.request.header_count; i++)
        if (strcasecmp(again.request.headers[i].name, "authorization") == 0) {
            CHECK(strcmp(again.request.headers[i].value, VALUE) == 0);
            secrets++;
        }
    CHECK(secrets == 1);
}

static void try_request(struct inject_session *session, struct arena *arena, struct slice head)
{
    _cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
    struct request_head request;
    struct error err;
    if (request_parse(arena, head.data, head.len, &request, &err) < 0 ||
        inject_check_request(session, &request, &err) < 0)
        return;
    inject_write_request(&out, session, &request, inject_wants_upgrade(&request));
    CHECK(!out.failed);
    check_written(arena, &out);
}

static void try_answer(struct inject_session *session, struct redact *redact, struct arena *arena,
                       struct slice head)
{
    _cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
    struct answer_head answer;
    struct error err;
    if (answer_parse(arena, head.data, head.len, &answer, &err) < 0)
        return;
    inject_write_answer(&out, session, redact, &answer, slice_of("OK"), FRAMING_CHUNKED, true);
    CHECK(out.failed || memmem(out.data, out.len, SECRET, strlen(SECRET)) == NULL);
    CHECK(out.failed || whole_head(out.data, out.len).len == out.len ||
          whole_head(out.data, out.len).data == NULL);
}

/* In pieces of a size that the first byte says: as many bytes come out as went in, at the same
 * times as with another secret, and none of them are the secret in any form. */
static void try_body(struct redact *redact, struct redact *other, const uint8_t *data, size_t size)
{
    /* Base64 at each alignment, as far as the secret alone determines it. */
    static const char *const forms[] = {SECRET, "c2stc2VjcmV0LT", "NrLXNlY3JldC0x",
                                        "zay1zZWNyZXQtM", "736b2d7365637265742d31"};
    _cleanup_buf_ struct buf out = BUF_INIT(size + 64), out2 = BUF_INIT(size + 64);
    size_t piece = 1 + data[0] % 32;
    for (size_t i = 0; i < size; i += piece) {
        struct slice part = {(const char *)data + i, piece < size - i ? piece : size - i};
        redact_feed(redact, part, &out);
        redact_feed(other, part, &out2);
        CHECK(out.len == out2.len);
    }
    redact_end(redact, &out);
    redact_end(other, &out2);
    CHECK(out.len == size && out2.len == size);
    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        CHECK(memmem(out.data, out.len, forms[i], strlen(forms[i])) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char rules[] = HOST "\0Authorization\0" VALUE "\0" SECRET;
    const struct egress_secrets message = {.id = "x", .headers = {rules, sizeof(rules)}};
    static const struct slice secret = {SECRET, sizeof(SECRET) - 1}, other = {"zq-anoth-er", 11};
    struct inject_session session = {.host = HOST};
    struct redact_set *sets[2];
    struct redact *redacts[2];
    struct error err;
    if (size == 0)
        return 0;
    CHECK(redact_set_new(&secret, 1, &sets[0], &err) == 0);
    CHECK(redact_set_new(&other, 1, &sets[1], &err) == 0);
    for (size_t i = 0; i < 2; i++)
        CHECK((redacts[i] = redact_new(sets[i], &err)) != NULL);
    CHECK(inject_new(&message, &session.inject, &err) == 0);
    struct arena *arena = arena_new();
    const char *text = arena_dup(arena, data, size);
    struct slice head = whole_head(text, size);
    if (head.data != NULL) {
        try_request(&session, arena, head);
        try_answer(&session, redacts[0], arena, head);
    }
    redact_reset(redacts[0]);
    try_body(redacts[0], redacts[1], data, size);
    arena_free(arena);
    inject_unref(session.inject);
    for (size_t i = 0; i < 2; i++) {
        redact_free(redacts[i]);
        redact_set_free(sets[i]);
    }
    return 0;
}
