/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers are checked as far as a measurement needs: a fast wrong answer must not count. For that,
 * looking for members in the text is enough.
 */
#include "client/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GONE_POLL_NS = 500 * 1000, GONE_TRIES = 40 * 1000 };

static char network[64]; /* a member of every spec; set once, before there are threads */

void api_network(const char *mode)
{
    snprintf(network, sizeof(network), ",\"network\":{\"mode\":\"%s\"}", mode);
}

int api_create(struct http *http, const char *name, const char *resources, struct error *err)
{
    char body[512];
    int len = snprintf(body, sizeof(body),
                       "{\"metadata\":{\"name\":\"%s\"},"
                       "\"spec\":{\"image\":\"host\",\"resources\":%s%s}}",
                       name, resources, network);
    struct http_request request = {
        .method = "POST", .path = "/v0/sandbox", .body = body, .body_len = (size_t)len};
    return http_expect(http, &request, 202, err);
}

/* The value behind "member": in the text, blanks skipped; NULL when it is not there. */
static const char *member(const char *json, const char *name)
{
    char key[64];
    snprintf(key, sizeof(key), "\"%s\"", name);
    const char *at = strstr(json, key);
    if (at == NULL)
        return NULL;
    at += strlen(key);
    return at + strspn(at, " \t\n:");
}

static int check_output(const char *json, const char *output, struct error *err)
{
    char want[128];
    snprintf(want, sizeof(want), "\"%s\\n\"", output);
    const char *value = member(json, "stdout");
    if (value == NULL || strncmp(value, want, strlen(want)) != 0)
        return error_set(err, ERROR_INTERNAL, "no output %s in %.300s", want, json);
    return 0;
}

int api_exec(struct http *http, const char *name, const char *command, const char *output,
             struct error *err)
{
    char path[256], body[512];
    snprintf(path, sizeof(path), "/v0/sandbox/%s/process", name);
    int len =
        snprintf(body, sizeof(body), "{\"command\":\"%s\",\"waitForCompletion\":true}", command);
    struct http_request request = {
        .method = "POST", .path = path, .body = body, .body_len = (size_t)len};
    if (http_expect(http, &request, 200, err) < 0)
        return -1;
    const char *code = member(http->body, "exitCode");
    if (code == NULL || code[0] != '0')
        return error_set(err, ERROR_INTERNAL, "%s: %.300s", command, http->body);
    if (output == NULL)
        return 0;
    if (member(http->body, "stdout") != NULL)
        return check_output(http->body, output, err);

    /* A server that does not send the output along is asked for it, on the same clock. */
    const char *pid = member(http->body, "pid");
    if (pid == NULL)
        return error_set(err, ERROR_INTERNAL, "no pid in %.300s", http->body);
    snprintf(path, sizeof(path), "/v0/sandbox/%s/process/%.*s/logs", name,
             (int)strspn(pid, "0123456789"), pid);
    struct http_request logs = {.method = "GET", .path = path};
    if (http_expect(http, &logs, 200, err) < 0)
        return -1;
    return check_output(http->body, output, err);
}

int api_delete(struct http *http, const char *name, struct error *err)
{
    char path[256];
    snprintf(path, sizeof(path), "/v0/sandbox/%s", name);
    struct http_request request = {.method = "DELETE", .path = path};
    return http_expect(http, &request, 202, err);
}

int api_await_gone(struct http *http, const char *name, struct error *err)
{
    char path[256];
    snprintf(path, sizeof(path), "/v0/sandbox/%s", name);
    struct http_request request = {.method = "GET", .path = path};
    for (int i = 0; i < GONE_TRIES; i++) {
        if (http_call(http, &request, err) < 0)
            return -1;
        if (http->status == 404)
            return 0;
        struct timespec pause = {.tv_nsec = GONE_POLL_NS};
        nanosleep(&pause, NULL);
    }
    return error_set(err, ERROR_TIMEOUT, "sandbox %s does not go away: %.300s", name, http->body);
}

int api_await_pool(struct http *http, const char *pool, struct error *err)
{
    char path[256];
    snprintf(path, sizeof(path), "/v0/pools/%s", pool);
    struct http_request request = {.method = "GET", .path = path};
    for (int i = 0; i < GONE_TRIES; i++) {
        if (http_expect(http, &request, 200, err) < 0)
            return -1;
        const char *size = member(http->body, "size"), *ready = member(http->body, "ready");
        const char *making = member(http->body, "making");
        if (size != NULL && ready != NULL && making != NULL && atoi(size) == atoi(ready) &&
            making[0] == '0')
            return 0;
        struct timespec pause = {.tv_nsec = GONE_POLL_NS};
        nanosleep(&pause, NULL);
    }
    return error_set(err, ERROR_TIMEOUT, "the pool %s does not get full: %.300s", pool, http->body);
}

int api_put_file(struct http *http, const char *name, const char *path, const void *data,
                 size_t len, struct error *err)
{
    char target[512];
    snprintf(target, sizeof(target), "/v0/sandbox/%s/filesystem%s", name, path);
    struct http_request request = {.method = "PUT",
                                   .path = target,
                                   .type = "application/octet-stream",
                                   .body = data,
                                   .body_len = len};
    return http_expect(http, &request, 200, err);
}

int api_get_file(struct http *http, const char *name, const char *path, size_t len,
                 struct error *err)
{
    char target[512];
    snprintf(target, sizeof(target), "/v0/sandbox/%s/filesystem%s", name, path);
    struct http_request request = {
        .method = "GET", .path = target, .accept = "application/octet-stream"};
    if (http_expect(http, &request, 200, err) < 0)
        return -1;
    if (http->body_total != len)
        return error_set(err, ERROR_INTERNAL, "GET %s gave %llu bytes, not %zu", target,
                         (unsigned long long)http->body_total, len);
    return 0;
}
