/* SPDX-License-Identifier: Apache-2.0 */

/* What is taken out of streams, and that nothing can be learned from what is not. */

#include "egress/redact.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/cleanup.h"

enum { OUT_MAX = 1 << 20, SECRETS_MAX = 4 };

struct subject {
    struct redact_set *set;
    struct redact *redact;
};

static struct subject subject_of(const char *const *secrets, size_t count)
{
    struct slice list[SECRETS_MAX];
    struct subject s;
    struct error err;
    for (size_t i = 0; i < count; i++)
        list[i] = slice_of(secrets[i]);
    assert_int_equal(redact_set_new(list, count, &s.set, &err), 0);
    s.redact = redact_new(s.set, &err);
    assert_non_null(s.redact);
    return s;
}

static void subject_free(struct subject *s)
{
    redact_free(s->redact);
    redact_set_free(s->set);
}

static void feed(struct subject *s, const char *text, size_t piece, struct buf *out)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len; i += piece)
        redact_feed(s->redact, (struct slice){text + i, piece < len - i ? piece : len - i}, out);
}

/* In pieces of every size, the same. */
static void redacted(const char *const *secrets, size_t count, const char *text,
                     const char *expected)
{
    struct subject s = subject_of(secrets, count);
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        _cleanup_buf_ struct buf out = BUF_INIT(OUT_MAX);
        feed(&s, text, piece, &out);
        redact_end(s.redact, &out);
        assert_string_equal(out.len == 0 ? "" : out.data, expected);
    }
    subject_free(&s);
}

static void test_rows(void **state)
{
    static const struct {
        const char *secret, *text, *expected;
    } rows[] = {
        {"sk-12345", "", ""},
        {"sk-12345", "nothing of it", "nothing of it"},
        {"sk-12345", "sk-12345", "********"},
        {"sk-12345", "a sk-12345 b", "a ******** b"},
        {"sk-12345", "sk-12345sk-12345", "****************"},
        {"sk-12345", "sk-sk-12345", "sk-********"},
        {"sk-12345", "sk-1234", "sk-1234"},
        {"sk-12345", "sk-1234\nsk-12345\n", "sk-1234\n********\n"},
        {"sk-12345", "\xc3\xa4sk-12345\xc3\xa4", "\xc3\xa4********\xc3\xa4"},
        {"aaaaaaab", "aaaaaaaaaab", "aaa********"},
        {"abababab", "ababababab", "**********"}, /* two that overlap */
        {"short", "short", "short"},
        /* in hexadecimal */
        {"sk-12345", "736b2d3132333435", "****************"},
        {"sk-12345", "x736B2D3132333435x", "x****************x"},
        {"jkl-\x7e?>o", "6a6b6c2d7e3F3e6f", "****************"},
        /* in base64, at each place; with what stands in front and behind */
        {"sk-12345", "c2stMTIzNDU=", "***********="},
        {"sk-12345", "c2stMTIzNDU", "***********"},
        {"sk-12345", "eHNrLTEyMzQ1eA==", "e***********eA=="},
        {"sk-12345", "eHhzay0xMjM0NXg=", "eH************g="},
        {"jkl?~>>o", "amtsP34+Pm8=", "***********="},
        {"jkl?~>>o", "amtsP34-Pm8", "***********"},
        /* with escapes, of any kind and as many as somebody likes */
        {"sk/12345", "\"sk\\/12345\"", "\"*********\""},
        {"a\"b\\c<d&", "\"a\\\"b\\\\c\\u003Cd\\u0026\"", "\"********************\""},
        {"a\"b\\c<d&", "a\"b\\c<d&", "********"},
        {"a\"b\\c<d&", "a&quot;b\\c&lt;d&amp;", "********************"},
        {"a\"b\\c<d&", "a&#34;b&#x5c;c&#60;d&#38;", "*************************"},
        {"sk/1+3=5", "k=sk%2F1%2B3%3D5&", "k=**************&"},
        {"sk/1+3=5", "sk%2f1%2b3%3d5", "**************"},
        {"sk 1 3 5", "sk+1%203+5", "**********"},
        {"sk-12345", "%73%6b%2d%31%32%33%34%35", "************************"},
        {"sk-12345", "\\u0073\\u006b-12345", "******************"},
        {"sk/12345", "\\\\sk%5C/12345 sk\\u002512345", "\\\\sk%5C/12345 sk\\u002512345"},
        {"sk%2F345", "sk%2F345", "********"},
        {"sk%2F345", "sk%252F345", "**********"},
        {"jkl?~>>o", "amtsP34%2BPm8%3D", "*************%3D"},
        {"jkl?\x7f>>?", "amts", "amts"},
        {"sk-12345", "&#115;k-12345 &#xyz; &unknown; % \\", "************* &#xyz; &unknown; % \\"},
        /* what is base64 itself, decoded */
        {"dXNlcjpwYXNzd29yZA==", "user:password", "*************"},
        {"dXNlcjpwYXNzd29yZA==", "password", "********"},
        {"dXNlcjpwYXNzd29yZA==", "dXNlcjpwYXNzd29yZA==", "********************"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        redacted(&rows[i].secret, 1, rows[i].text, rows[i].expected);
}

/* Secrets that begin or overlap with each other are all gone. */
static void test_several(void **state)
{
    static const char *const secrets[] = {"abcdefgh", "abcdefgh-and-more", "gh-and-m", "abcdefgh"};
    redacted(secrets, 4, "x abcdefgh y", "x ******** y");
    redacted(secrets, 4, "x abcdefgh-and-more y", "x ***************** y");
    redacted(secrets, 4, "x abcdefgh-and-m y", "x ************** y");
    redacted(secrets, 4, "x bcdefgh-and-more y", "x bcdef********ore y");
}

/* Lines are passed on as soon as they are whole: events in a stream must not wait for the next. */
static void test_lines(void **state)
{
    static const char *const secret[] = {"sk-12345"};
    struct subject s = subject_of(secret, 1);
    _cleanup_buf_ struct buf out = BUF_INIT(OUT_MAX);
    feed(&s, "data: tick\n\n", 100, &out);
    assert_string_equal(out.data, "data: tick\n\n");
    feed(&s, "data: sk-123", 100, &out);
    assert_string_equal(out.data, "data: tick\n\n");
    assert_int_equal(redact_held(s.redact), 12);
    feed(&s, "45\n\n", 100, &out);
    assert_string_equal(out.data, "data: tick\n\ndata: ********\n\n");
    assert_int_equal(redact_held(s.redact), 0);
    subject_free(&s);
}

/* What was released by the clock is gone; the rest of a secret is not. */
static void test_release(void **state)
{
    static const char *const secret[] = {"sk-12345"};
    struct subject s = subject_of(secret, 1);
    _cleanup_buf_ struct buf out = BUF_INIT(OUT_MAX);
    feed(&s, "x sk-1", 100, &out);
    redact_release(s.redact, &out);
    assert_string_equal(out.data, "x sk-1");
    feed(&s, "2345 y", 100, &out);
    redact_end(s.redact, &out);
    assert_string_equal(out.data, "x sk-1**** y");
    subject_free(&s);
}

/* A random text of letters that the secrets are made of, with beginnings and ends of them in it. */
static void random_text(const char *secret, char *text, size_t size)
{
    static const char others[] = "abcdefgh\\\"%/&;u0 \n=+";
    size_t n = strlen(secret), len = 0;
    while (len + n + 1 < size) {
        if (rand() % 4 != 0) {
            text[len++] = others[(size_t)rand() % (sizeof(others) - 1)];
            continue;
        }
        size_t from = (size_t)rand() % n, part = 1 + (size_t)rand() % (n - from);
        if (part == n)
            part--;
        memcpy(text + len, secret + from, part);
        len += part;
    }
    text[len] = '\0';
}

/*
 * The oracle: whatever a host sends, as long as it is not the whole secret, as much of it goes on
 * at each step as with a secret that nothing of it resembles, and unchanged.
 */
static void test_nothing_is_told_of_parts(void **state)
{
    static const char *const secret[] = {"sk-hidden/0123456789+abcdef"};
    static const char *const other[] = {"ZZZZZZZZZZZZZZZZZZZZZZZZZZZ"};
    struct subject s = subject_of(secret, 1), o = subject_of(other, 1);
    char text[4096];
    srand(1);
    for (int round = 0; round < 200; round++) {
        _cleanup_buf_ struct buf out = BUF_INIT(OUT_MAX), out2 = BUF_INIT(OUT_MAX);
        random_text(secret[0], text, sizeof(text));
        if (strstr(text, secret[0]) != NULL)
            continue;
        size_t len = strlen(text), piece;
        for (size_t i = 0; i < len; i += piece) {
            piece = 1 + (size_t)rand() % 100;
            struct slice part = {text + i, piece < len - i ? piece : len - i};
            redact_feed(s.redact, part, &out);
            redact_feed(o.redact, part, &out2);
            assert_int_equal(out.len, out2.len);
            if (rand() % 50 == 0) {
                redact_release(s.redact, &out);
                redact_release(o.redact, &out2);
            }
        }
        redact_end(s.redact, &out);
        redact_end(o.redact, &out2);
        assert_string_equal(out.data, text);
        assert_string_equal(out2.data, text);
    }
    subject_free(&s);
    subject_free(&o);
}

/* Each character as it is or escaped in some way. */
static void escaped(const char *secret, struct buf *out)
{
    for (const char *c = secret; *c != '\0'; c++) {
        int way = rand() % 6;
        if (way == 0)
            buf_addf(out, rand() % 2 ? "%%%02x" : "%%%02X", *c);
        else if (way == 1)
            buf_addf(out, rand() % 2 ? "\\u%04x" : "\\u%04X", *c);
        else if (way == 2)
            buf_addf(out, rand() % 2 ? "&#%d;" : "&#x%x;", *c);
        else
            buf_addc(out, *c);
    }
}

/* Behind any text, in any pieces: gone, and nothing else. */
static void test_random_escapes(void **state)
{
    static const char *const secret[] = {"sk-hidden/0123456789+abcdef"};
    struct subject s = subject_of(secret, 1);
    char text[2048];
    srand(2);
    for (int round = 0; round < 300; round++) {
        _cleanup_buf_ struct buf in = BUF_INIT(OUT_MAX), out = BUF_INIT(OUT_MAX);
        random_text(secret[0], text, 64 + (size_t)rand() % (sizeof(text) - 64));
        if (strstr(text, secret[0]) != NULL) /* by chance */
            continue;
        buf_adds(&in, text);
        buf_adds(&in, " "); /* ends an escape that the text may have begun */
        size_t from = in.len, piece;
        escaped(secret[0], &in);
        size_t to = in.len;
        buf_adds(&in, " ");
        for (size_t i = 0; i < in.len; i += piece) {
            piece = 1 + (size_t)rand() % 200;
            redact_feed(s.redact,
                        (struct slice){in.data + i, piece < in.len - i ? piece : in.len - i}, &out);
        }
        redact_end(s.redact, &out);
        memset(in.data + from, '*', to - from);
        assert_string_equal(out.data, in.data);
    }
    subject_free(&s);
}

/* Long secrets, much text, no secret at all. */
static void test_sizes(void **state)
{
    enum { LONG = 8 * 1024 };
    char *secret = malloc(LONG + 1), *text = malloc(REDACT_PIECE_MAX);
    _cleanup_buf_ struct buf out = BUF_INIT(OUT_MAX);
    for (size_t i = 0; i < LONG; i++)
        secret[i] = (char)('!' + i * 31 % 90);
    secret[LONG] = '\0';
    const char *const list[] = {secret};
    struct subject s = subject_of(list, 1), none = subject_of(NULL, 0);
    memset(text, 'x', REDACT_PIECE_MAX);
    memcpy(text + 50000, secret, LONG);
    redact_feed(s.redact, (struct slice){text, REDACT_PIECE_MAX}, &out);
    assert_true(redact_held(s.redact) >= LONG);
    redact_end(s.redact, &out);
    assert_int_equal(out.len, REDACT_PIECE_MAX);
    for (size_t i = 0; i < REDACT_PIECE_MAX; i++)
        assert_int_equal(out.data[i], i >= 50000 && i < 50000 + LONG ? '*' : 'x');
    buf_clear(&out);
    redact_feed(none.redact, slice_of("at once"), &out);
    assert_string_equal(out.data, "at once");
    subject_free(&s);
    subject_free(&none);
    free(secret);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_release),
        cmocka_unit_test(test_nothing_is_told_of_parts),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_random_escapes),
    };
    return cmocka_run_group_tests_name("egress/redact", tests, NULL, NULL);
}
