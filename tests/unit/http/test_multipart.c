/* SPDX-License-Identifier: Apache-2.0 */

/* Forms: the grammar by tables, in windows of every size, and whole requests through the server. */

#include "fixture.h"

#include "base/limits.h"
#include "http/client.h"
#include "http/multipart.h"

#define TYPE "multipart/form-data; boundary=XX"

/* "name[/filename][:type]=content " for each part, then "end" or the error's name. The bytes come
 * `step` at a time. */
static void decode(const char *type, const char *body, size_t len, size_t step, char *out,
                   size_t size)
{
    struct form_decoder d;
    struct error err = {0};
    size_t at = 0, have = 0, n = 0;
    out[0] = '\0';
    if (form_decoder_init(&d, type, &err) != 0) {
        snprintf(out, size, "%s", error_name(err.code));
        return;
    }
    struct arena *arena = arena_new();
    for (;;) {
        size_t used = 0;
        struct form_part part;
        enum form_step next = form_decode(&d, body + at, have - at, have == len, &used, &err);
        assert_true(used <= have - at);
        if (next == FORM_PART) {
            if (form_part_parse(arena, body + at, used, &part, &err) != 0)
                next = FORM_BAD;
            else
                n += (size_t)snprintf(out + n, size - n, "%s%s%s%s%s=", part.name,
                                      part.filename ? "/" : "", part.filename ? part.filename : "",
                                      part.content_type ? ":" : "",
                                      part.content_type ? part.content_type : "");
        } else if (next == FORM_DATA) {
            assert_true(used > 0);
            n += (size_t)snprintf(out + n, size - n, "%.*s", (int)used, body + at);
        } else if (next == FORM_PART_END)
            n += (size_t)snprintf(out + n, size - n, " ");
        if (next == FORM_BAD || next == FORM_END) {
            snprintf(out + n, size - n, "%s", next == FORM_END ? "end" : error_name(err.code));
            break;
        }
        at += used;
        if (next == FORM_MORE && used == 0) {
            assert_true(have < len);
            have = have + step < len ? have + step : len;
        }
    }
    arena_free(arena);
}

#define DISP(params)          "Content-Disposition: form-data" params "\r\n"
#define PART(params, content) "--XX\r\n" DISP(params) "\r\n" content "\r\n"
#define END                   "--XX--\r\n"

static const struct {
    const char *type;
    const char *body;
    const char *want;
} cases[] = {
    {TYPE, PART("; name=\"a\"", "1") END, "a=1 end"},
    {TYPE, PART("; name=a", "") "--XX--", "a= end"},
    {TYPE, "\r\n" PART("; name=\"a\"", "1") END "epilogue", "a=1 end"},
    {TYPE, END, "end"},
    {TYPE, PART("; name=\"a\"", "1") PART(";name=\"b\";filename=\"x.txt\"", "2\r\n3") END,
     "a=1 b/x.txt=2\r\n3 end"},
    {TYPE,
     "--XX\r\ncontent-type: image/png \r\nX-Other: 1\r\n" DISP(
         "; name=\"f\"; filename=\"\"") "\r\n\r\n\r\n--X\r\n--XY\r\n-\r\n" END,
     "f/:image/png=\r\n\r\n--X\r\n--XY\r\n- end"},
    {"Multipart/Form-Data ; charset=x; Boundary=\"a b'()\"",
     "--a b'()\r\n" DISP("; name=\"q\"") "\r\nv\r\n--a b'()--", "q=v end"},
    {TYPE, PART("; name=\"a\\\"b\\\\c\"; filename=\"C:\\dir\\f\"", "1") END,
     "a\"b\\c/C:\\dir\\f=1 end"},
    {TYPE, PART("; name=\"\xc3\xa4%22\";", "1") END, "\xc3\xa4%22=1 end"},
    {TYPE, PART("; name=\"a\"; filename*=UTF-8''x", "1") END, "a=1 end"},
    /* the type */
    {"application/json", END, "UNSUPPORTED_MEDIA_TYPE"},
    {"multipart/form-datax; boundary=XX", END, "UNSUPPORTED_MEDIA_TYPE"},
    {"multipart/mixed; boundary=XX", END, "UNSUPPORTED_MEDIA_TYPE"},
    {NULL, END, "UNSUPPORTED_MEDIA_TYPE"},
    {"multipart/form-data", END, "INVALID_MULTIPART"},
    {"multipart/form-data; boundary=", END, "INVALID_MULTIPART"},
    {"multipart/form-data; boundary=\"\"", END, "INVALID_MULTIPART"},
    {"multipart/form-data; boundary=\"a ", END, "INVALID_MULTIPART"},
    {"multipart/form-data; boundary=\"a \"", END, "INVALID_MULTIPART"},
    {"multipart/form-data; boundary=a; boundary=a", END, "INVALID_MULTIPART"},
    {"multipart/form-data; boundary=\"a\tb\"", END, "INVALID_MULTIPART"},
    {"multipart/form-data; boundary="
     "12345678901234567890123456789012345678901234567890123456789012345678901",
     END, "INVALID_MULTIPART"},
    /* the frame */
    {TYPE, "", "INVALID_MULTIPART"},
    {TYPE, "preamble\r\n" END, "INVALID_MULTIPART"},
    {TYPE, "\r\n\r\n" END, "INVALID_MULTIPART"},
    {TYPE, "--XY--", "INVALID_MULTIPART"},
    {TYPE, "--XX", "INVALID_MULTIPART"},
    {TYPE, "--XX \r\n", "INVALID_MULTIPART"},
    {TYPE, "--XX\n" DISP("; name=a") "\r\n\r\n" END, "INVALID_MULTIPART"},
    {TYPE, PART("; name=a", "1"), "a=1INVALID_MULTIPART"},
    {TYPE, PART("; name=a", "1") "--XX-", "a=1 INVALID_MULTIPART"},
    {TYPE, PART("; name=a", "1") "--XXX", "a=1 INVALID_MULTIPART"},
    {TYPE, "--XX\r\n" DISP("; name=a"), "INVALID_MULTIPART"},
    /* the fields */
    {TYPE, "--XX\r\n\r\n\r\n" END, "INVALID_MULTIPART"},
    {TYPE, "--XX\r\nContent-Type: a/b\r\n\r\n\r\n" END, "INVALID_MULTIPART"},
    {TYPE, PART("", "1") END, "INVALID_MULTIPART"},
    {TYPE, PART("; filename=\"x\"", "1") END, "INVALID_MULTIPART"},
    {TYPE, PART("; name=\"a", "1") END, "INVALID_MULTIPART"},
    {TYPE, PART("; name=\"a\"x", "1") END, "INVALID_MULTIPART"},
    {TYPE, PART("; name", "1") END, "INVALID_MULTIPART"},
    {TYPE, PART("; name=\"a\"; name=\"b\"", "1") END, "INVALID_MULTIPART"},
    {TYPE, PART("; name=\"a\"; filename=x; filename=y", "1") END, "INVALID_MULTIPART"},
    {TYPE, PART("; name=\"a\x01\"", "1") END, "INVALID_MULTIPART"},
    {TYPE, PART("; name=\"a\nb\"", "1") END, "INVALID_MULTIPART"},
    {TYPE, "--XX\r\nContent-Disposition: attachment; name=a\r\n\r\n\r\n" END, "INVALID_MULTIPART"},
    {TYPE, "--XX\r\n" DISP("; name=a") DISP("; name=b") "\r\n\r\n" END, "INVALID_MULTIPART"},
    {TYPE, "--XX\r\n" DISP("; name=a") " folded\r\n\r\n\r\n" END, "INVALID_MULTIPART"},
    {TYPE, "--XX\r\nNo Colon\r\n\r\n\r\n" END, "INVALID_MULTIPART"},
    {TYPE, "--XX\r\nContent-Type: a\r\nContent-Type: b\r\n" DISP("; name=a") "\r\n\r\n" END,
     "INVALID_MULTIPART"},
};

static void test_cases(void **state)
{
    char out[512];
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t step = 1; step < 90; step++) {
            decode(cases[i].type, cases[i].body, strlen(cases[i].body), step, out, sizeof(out));
            if (strcmp(out, cases[i].want) != 0)
                fail_msg("case %zu, step %zu: %s, not %s", i, step, out, cases[i].want);
        }
}

static void test_limits(void **state)
{
    char out[64];
    struct buf b = BUF_INIT(1 << 20);
    buf_adds(&b, "--XX\r\nX-Long: ");
    while (b.len < 5000)
        buf_addc(&b, 'x');
    decode(TYPE, b.data, b.len, 100, out, sizeof(out));
    assert_string_equal(out, "HEADERS_TOO_LARGE");
    buf_clear(&b);
    for (int i = 0; i <= FORM_PARTS_MAX; i++)
        buf_adds(&b, PART("; name=a", ""));
    char *big = malloc(8192);
    decode(TYPE, b.data, b.len, 1000, big, 8192);
    assert_non_null(strstr(big, "a= PAYLOAD_TOO_LARGE"));
    free(big);
    buf_release(&b);
}

/* --- through the server --- */

enum { LARGE = 9 << 20 };

static int serve(struct http_exchange *x, void *ctx, struct error *err)
{
    struct multipart *form;
    struct form_part part;
    struct buf out = BUF_INIT(4096);
    int rc;
    if (multipart_open(x, &form, err) != 0)
        return -1;
    while ((rc = multipart_next(form, &part, err)) > 0) {
        uint64_t total = 0, sum = 0;
        unsigned char piece[1000];
        struct slice content;
        ssize_t n = 0;
        if (strcmp(part.name, "skip") == 0)
            continue;
        if (strcmp(part.name, "all") == 0) {
            if (multipart_read_all(form, 100, &content, err) != 0)
                break;
            buf_addf(&out, "all=%s ", content.data);
            continue;
        }
        while ((n = multipart_read(form, piece, sizeof(piece), err)) > 0) {
            for (ssize_t i = 0; i < n; i++)
                sum += piece[i] * (total + (uint64_t)i + 1);
            total += (uint64_t)n;
        }
        if (n < 0)
            break;
        buf_addf(&out, "%s=%llu:%llx ", part.name, (unsigned long long)total,
                 (unsigned long long)sum);
    }
    if (rc == 0)
        http_reply(x, 200, NULL, out.data, out.len, err);
    buf_release(&out);
    return rc == 0 ? 0 : -1;
}

static char *post(struct fixture *f, const char *body, size_t len, bool chunked, size_t step)
{
    struct error err = {0};
    struct http_client *client = http_client_new(f->loop, f->address, "test", &err);
    struct http_header type = {"Content-Type", TYPE};
    struct http_call call = {.method = "POST",
                             .target = "/",
                             .headers = &type,
                             .header_count = 1,
                             .content_length = chunked ? -1 : (int64_t)len};
    struct http_answer answer;
    char *text = NULL;
    assert_int_equal(http_client_send(client, &call, &err), 0);
    for (size_t at = 0, n; at < len; at += n) {
        n = len - at < step ? len - at : step;
        assert_int_equal(http_client_write(client, body + at, n, &err), 0);
    }
    assert_int_equal(http_client_answer(client, &answer, &err), 0);
    assert_int_equal(http_client_read_all(client, 4096, &text, NULL, &err), 0);
    http_client_free(client);
    return text;
}

/* Content full of what looks like boundaries, pieces of every size. */
static void upload(struct fixture *f)
{
    struct buf b = BUF_INIT(LARGE * 2);
    char want[128];
    uint64_t sum = 0, total = 0;
    buf_adds(&b, PART("; name=skip", "\r\n--X") PART("; name=all", "short"));
    buf_adds(&b, "--XX\r\n" DISP("; name=big; filename=f") "\r\n");
    for (size_t start = b.len; b.len - start < LARGE;) {
        static const char *const pieces[] = {"\r\n--X", "\r\n--",     "\r",
                                             "\r\r\n",  "0123456789", "\n"};
        buf_adds(&b, pieces[(b.len * 7 + b.len / 5) % ARRAY_LEN(pieces)]);
        total = b.len - start;
    }
    for (uint64_t i = 0; i < total; i++)
        sum += (unsigned char)b.data[b.len - total + i] * (i + 1);
    buf_adds(&b, "\r\n" END);
    snprintf(want, sizeof(want), "all=short big=%llu:%llx ", (unsigned long long)total,
             (unsigned long long)sum);
    for (int chunked = 0; chunked < 2; chunked++)
        for (size_t step = 4095; step < 200000; step = step * 5 + 2) {
            char *text = post(f, b.data, b.len, chunked, step);
            assert_string_equal(text, want);
            free(text);
        }
    buf_release(&b);
    static const char cut[] = PART("; name=all", "x");
    char *text = post(f, cut, sizeof(cut) - 1, true, 3);
    assert_non_null(strstr(text, "INVALID_MULTIPART"));
    free(text);
}

static void test_upload(void **state)
{
    fixture_run(serve, NULL, upload, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_upload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
