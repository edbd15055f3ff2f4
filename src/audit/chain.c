/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Lines and their hashes. This is on the way of every request, so the algorithm is looked up once,
 * and a line is built where it will be written from.
 */

#include "audit/chain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/evp.h>

#define HASH_MEMBER ",\"hash\":\""
#define HASH_END    "\"}"

enum { HASH_MEMBER_LEN = sizeof(HASH_MEMBER) - 1, HASH_END_LEN = sizeof(HASH_END) - 1 };

int audit_chain_init(struct audit_chain *chain, struct error *err)
{
    *chain = (struct audit_chain){0};
    chain->algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    chain->context = EVP_MD_CTX_new();
    if (chain->algorithm != NULL && chain->context != NULL)
        return 0;
    audit_chain_release(chain);
    return error_set(err, ERROR_INTERNAL, "OpenSSL has no SHA-256");
}

void audit_chain_release(struct audit_chain *chain)
{
    EVP_MD_free(chain->algorithm);
    EVP_MD_CTX_free(chain->context);
    chain->algorithm = chain->context = NULL;
}

static void hash_after(const struct audit_chain *chain, struct slice body,
                       unsigned char out[AUDIT_HASH_SIZE])
{
    if (EVP_DigestInit_ex2(chain->context, chain->algorithm, NULL) != 1 ||
        EVP_DigestUpdate(chain->context, chain->head, AUDIT_HASH_SIZE) != 1 ||
        EVP_DigestUpdate(chain->context, body.data, body.len) != 1 ||
        EVP_DigestFinal_ex(chain->context, out, NULL) != 1)
        abort(); /* it worked before: nothing sensible can go on */
}

void audit_chain_fold(struct audit_chain *chain, struct slice bytes)
{
    unsigned char hash[AUDIT_HASH_SIZE];
    hash_after(chain, bytes, hash);
    memcpy(chain->head, hash, AUDIT_HASH_SIZE);
}

void audit_hash_text(const unsigned char hash[AUDIT_HASH_SIZE], char out[AUDIT_HASH_TEXT + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < AUDIT_HASH_SIZE; i++) {
        out[2 * i] = digits[hash[i] >> 4];
        out[2 * i + 1] = digits[hash[i] & 15];
    }
    out[AUDIT_HASH_TEXT] = '\0';
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool audit_hash_parse(const char *text, unsigned char ret_hash[AUDIT_HASH_SIZE])
{
    for (size_t i = 0; i < AUDIT_HASH_SIZE; i++) {
        int high = digit_of(text[2 * i]);
        int low = high < 0 ? -1 : digit_of(text[2 * i + 1]);
        if (low < 0)
            return false;
        ret_hash[i] = (unsigned char)(high << 4 | low);
    }
    return true;
}

void audit_chain_seal(struct audit_chain *chain, struct buf *lines, size_t start)
{
    unsigned char hash[AUDIT_HASH_SIZE];
    char text[AUDIT_HASH_TEXT + 1];
    hash_after(chain, (struct slice){lines->data + start, lines->len - start}, hash);
    audit_hash_text(hash, text);
    buf_add(lines, HASH_MEMBER, HASH_MEMBER_LEN);
    buf_add(lines, text, AUDIT_HASH_TEXT);
    buf_adds(lines, HASH_END "\n");
    if (lines->failed)
        return;
    memcpy(chain->head, hash, AUDIT_HASH_SIZE);
    chain->seq++;
}

/* {"seq":7,"time":"…Z" */
static bool parse_front(struct slice body, struct audit_line *line)
{
    static const char front[] = "{\"seq\":", time[] = ",\"time\":\"";
    size_t at = sizeof(front) - 1;
    if (body.len < at + 1 || memcmp(body.data, front, at) != 0 || body.data[at] == '0')
        return false;
    uint64_t seq = 0;
    size_t digits = 0;
    for (; at < body.len && body.data[at] >= '0' && body.data[at] <= '9' && digits < 19; digits++)
        seq = 10 * seq + (uint64_t)(body.data[at++] - '0');
    size_t time_len = sizeof(time) - 1;
    if (digits == 0 || body.len < at + time_len + AUDIT_TIME_LEN + 1 ||
        memcmp(body.data + at, time, time_len) != 0 ||
        body.data[at + time_len + AUDIT_TIME_LEN] != '"')
        return false;
    line->seq = seq;
    line->time = (struct slice){body.data + at + time_len, AUDIT_TIME_LEN};
    return true;
}

bool audit_line_parse(struct slice text, struct audit_line *ret_line)
{
    const size_t tail = HASH_MEMBER_LEN + AUDIT_HASH_TEXT + HASH_END_LEN;
    if (text.len <= tail || text.len > AUDIT_LINE_MAX)
        return false;
    const char *member = text.data + text.len - tail;
    struct audit_line line = {.body = {text.data, text.len - tail}};
    if (memcmp(member, HASH_MEMBER, HASH_MEMBER_LEN) != 0 ||
        memcmp(text.data + text.len - HASH_END_LEN, HASH_END, HASH_END_LEN) != 0 ||
        !audit_hash_parse(member + HASH_MEMBER_LEN, line.hash) || !parse_front(line.body, &line))
        return false;
    *ret_line = line;
    return true;
}

bool audit_chain_follow(struct audit_chain *chain, const struct audit_line *line)
{
    unsigned char hash[AUDIT_HASH_SIZE];
    hash_after(chain, line->body, hash);
    bool right = memcmp(hash, line->hash, AUDIT_HASH_SIZE) == 0;
    memcpy(chain->head, line->hash, AUDIT_HASH_SIZE);
    chain->seq = line->seq;
    return right;
}

/* --- members --- */

/* The length of the character that the text begins with; 0: it begins with none. */
static size_t character(const unsigned char *text, size_t len)
{
    unsigned char c = text[0];
    size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : 0;
    if (c >= 0xf0 && c < 0xf5)
        n = 4;
    if (n == 0 || n > len)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (c == 0xe0 && text[1] < 0xa0) || (c == 0xf0 && text[1] < 0x90);
    bool beyond = (c == 0xed && text[1] >= 0xa0) || (c == 0xf4 && text[1] >= 0x90);
    return overlong || beyond ? 0 : n;
}

static void add_escaped(struct buf *line, unsigned char c)
{
    static const char short_forms[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"'};
    if (c == '\\' || (c < sizeof(short_forms) && short_forms[c] != 0)) {
        buf_addc(line, '\\');
        buf_addc(line, c == '\\' ? '\\' : short_forms[c]);
    } else {
        buf_addf(line, "\\u%04x", c);
    }
}

void audit_add_text(struct buf *line, const char *name, struct slice text, size_t max)
{
    const unsigned char *at = (const unsigned char *)text.data;
    size_t left = text.len < max ? text.len : max;
    if (text.len == 0)
        return;
    buf_adds(line, ",\"");
    buf_adds(line, name);
    buf_adds(line, "\":\"");
    while (left > 0) {
        size_t plain = 0;
        while (plain < left && at[plain] >= ' ' && at[plain] < 0x7f && at[plain] != '"' &&
               at[plain] != '\\')
            plain++;
        buf_add(line, at, plain);
        at += plain;
        left -= plain;
        if (left == 0)
            break;
        size_t n = character(at, left);
        if (n == 0 && text.len > max && left < 4)
            break; /* cut in the middle of it */
        if (n == 0)
            buf_adds(line, "\xef\xbf\xbd");
        else if (n == 1)
            add_escaped(line, *at);
        else
            buf_add(line, at, n);
        at += n == 0 ? 1 : n;
        left -= n == 0 ? 1 : n;
    }
    buf_adds(line, text.len > max ? "…\"" : "\"");
}

void audit_add_number(struct buf *line, const char *name, int64_t value)
{
    buf_addf(line, ",\"%s\":%" PRId64, name, value);
}

void audit_add_us(struct buf *line, const char *name, int64_t us)
{
    int64_t positive = us < 0 ? 0 : us;
    buf_addf(line, ",\"%s\":%" PRId64 ".%03d", name, positive / 1000, (int)(positive % 1000));
}

void audit_time_text(int64_t unix_ms, char out[AUDIT_TIME_LEN + 1])
{
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    snprintf(out, AUDIT_TIME_LEN + 1, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ",
             (tm.tm_year + 1900) % 10000, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
             tm.tm_sec, (int)(unix_ms % 1000));
}
