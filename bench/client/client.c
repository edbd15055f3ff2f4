/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times a running server from outside, as a client sees it.
 *
 *     client ADDRESS KEY-FILE TRUE BUSYBOX [NETWORK]
 *
 * NETWORK is the mode of network that every sandbox gets, none if it is not given.
 *
 * Driven line by line like the floor (floor/floor.c), with the same answers:
 *
 *     create N        → "create NS", "delete NS" N times: POST a sandbox, POST its first command,
 *                       whose output ends the measurement, both on one kept connection
 *     exec N          → "exec NS" N times: a static binary in a running sandbox
 *     read N, write N → "read NS", "write NS": a 100 MB file as raw bytes
 *     churn N         → "churn NS" and "churn-delete NS" N times, eight at a time
 *     idle N, idle-end N  makes N sandboxes that stay, and removes them
 *     grow N, shrink N    the same, on top of those that are there; shrink takes the newest away
 *     add N           → "add NS" N times: create, one after the other, of sandboxes that stay until
 *                       shrink takes them away
 *     claim N         → "claim NS" N times: as create, with the limits of the pool "host" (with a
 *                       network: "host-network"), which is full each time
 *     echo N          → "echo NS" N times: the same command in a running sandbox
 *     burst N         → "burst NS": from the first request to the last of N first outputs, all of
 *                       them asked for at once
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "client/api.h"
#include "client/crowd.h"

enum { BIG_SIZE = 100 * 1000 * 1000, CHURN_WORKERS = 8 };

static const char resources[] = "{\"cpu\":\"1000m\",\"memory\":\"512Mi\",\"disk\":\"1Gi\"}";
static const char resident[] = "bench-resident";

struct client {
    const char *address;
    char key[256];
    const char *true_path; /* on this side */
    const char *pool;
    char echo[300];
    struct http *http;
    bool has_resident;
    bool has_big;
    unsigned next;
    int grown;
    char *big;
};

static void sample(const char *name, int64_t ns)
{
    printf("%s %lld\n", name, (long long)ns);
}

static int read_file(const char *path, char *ret_text, size_t size, size_t *ret_len,
                     struct error *err)
{
    _cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret_text, size);
    if (n < 0)
        return error_sys(err, "read %s", path);
    *ret_len = (size_t)n;
    return 0;
}

/* The sandbox that execs and transfers happen in, with the binary uploaded. */
static int need_resident(struct client *client, struct error *err)
{
    char binary[256 * 1024];
    size_t len = 0;
    if (client->has_resident)
        return 0;
    if (read_file(client->true_path, binary, sizeof(binary), &len, err) < 0 ||
        api_create(client->http, resident, resources, err) < 0)
        return -1;
    client->has_resident = true;
    if (api_put_file(client->http, resident, "/workspace/true", binary, len, err) < 0)
        return -1;
    return api_exec(client->http, resident, "chmod 755 /workspace/true", NULL, err);
}

static int measure_create(struct client *client, int count, struct error *err)
{
    for (int i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof(name), "bench-create-%u", client->next++);
        int64_t start = now_ns();
        if (api_create(client->http, name, resources, err) < 0 ||
            api_exec(client->http, name, client->echo, "hi", err) < 0)
            return -1;
        int64_t output = now_ns();
        if (api_delete(client->http, name, err) < 0 || api_await_gone(client->http, name, err) < 0)
            return -1;
        sample("create", output - start);
        sample("delete", now_ns() - output);
    }
    return 0;
}

static int measure_exec(struct client *client, int count, struct error *err)
{
    if (need_resident(client, err) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        int64_t start = now_ns();
        if (api_exec(client->http, resident, "/workspace/true", NULL, err) < 0)
            return -1;
        sample("exec", now_ns() - start);
    }
    return 0;
}

static int need_big(struct client *client, struct error *err)
{
    if (client->big == NULL) {
        client->big = malloc(BIG_SIZE);
        if (client->big == NULL)
            return error_sys(err, "memory for the big file");
        unsigned state = 1;
        for (size_t i = 0; i < BIG_SIZE; i++)
            client->big[i] = (char)((state = state * 1103515245u + 12345u) >> 16);
    }
    return need_resident(client, err);
}

static int put_big(struct client *client, struct error *err)
{
    if (api_put_file(client->http, resident, "/workspace/big", client->big, BIG_SIZE, err) < 0)
        return -1;
    client->has_big = true;
    return 0;
}

static int measure_write(struct client *client, int count, struct error *err)
{
    if (need_big(client, err) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        int64_t start = now_ns();
        if (put_big(client, err) < 0)
            return -1;
        sample("write", now_ns() - start);
        /* As in the floor, every write makes a new file. */
        if (api_exec(client->http, resident, "rm /workspace/big", NULL, err) < 0)
            return -1;
        client->has_big = false;
    }
    return 0;
}

static int measure_read(struct client *client, int count, struct error *err)
{
    if (need_big(client, err) < 0 || (!client->has_big && put_big(client, err) < 0))
        return -1;
    for (int i = 0; i < count; i++) {
        int64_t start = now_ns();
        if (api_get_file(client->http, resident, "/workspace/big", BIG_SIZE, err) < 0)
            return -1;
        sample("read", now_ns() - start);
        if (memcmp(client->http->body, client->big, HTTP_KEPT) != 0)
            return error_set(err, ERROR_INTERNAL, "the file came back changed");
    }
    return 0;
}

static int run_crowd_as(struct client *client, enum crowd_kind kind, const char *prefix,
                        const char *called, int first, int count, int workers, struct error *err)
{
    _cleanup_free_ int64_t *ready = calloc((size_t)count, sizeof(*ready));
    _cleanup_free_ int64_t *gone = calloc((size_t)count, sizeof(*gone));
    if (ready == NULL || gone == NULL)
        return error_sys(err, "memory for %d samples", count);
    struct crowd crowd = {.address = client->address,
                          .key = client->key,
                          .prefix = prefix,
                          .command = client->echo,
                          .kind = kind,
                          .first = first,
                          .count = count,
                          .workers = workers,
                          .ready_ns = ready,
                          .gone_ns = gone};
    if (crowd_run(&crowd, err) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        if (kind != CROWD_DELETE)
            sample(called, ready[i]);
        if (kind != CROWD_CREATE) {
            printf("%s-delete ", called);
            printf("%lld\n", (long long)gone[i]);
        }
    }
    return 0;
}

static int run_crowd_from(struct client *client, enum crowd_kind kind, const char *prefix,
                          int first, int count, int workers, struct error *err)
{
    return run_crowd_as(client, kind, prefix, prefix, first, count, workers, err);
}

static int run_crowd(struct client *client, enum crowd_kind kind, const char *prefix, int count,
                     struct error *err)
{
    return run_crowd_from(client, kind, prefix, 0, count, CHURN_WORKERS, err);
}

static int grow(struct client *client, int count, struct error *err)
{
    if (run_crowd_from(client, CROWD_CREATE, "grow", client->grown, count, CHURN_WORKERS, err) < 0)
        return -1;
    client->grown += count;
    return 0;
}

static int measure_add(struct client *client, int count, struct error *err)
{
    if (run_crowd_as(client, CROWD_CREATE, "grow", "add", client->grown, count, 1, err) < 0)
        return -1;
    client->grown += count;
    return 0;
}

static int shrink(struct client *client, int count, struct error *err)
{
    client->grown -= count;
    return run_crowd_from(client, CROWD_DELETE, "grow", client->grown, count, CHURN_WORKERS, err);
}

static int measure_burst(struct client *client, int count, struct error *err)
{
    int64_t start = now_ns();
    if (run_crowd_from(client, CROWD_CREATE, "burst-one", 0, count, count, err) < 0)
        return -1;
    sample("burst", now_ns() - start);
    return run_crowd_from(client, CROWD_DELETE, "burst-one", 0, count, CHURN_WORKERS, err);
}

static int measure_claim(struct client *client, int count, struct error *err)
{
    for (int i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof(name), "bench-claim-%u", client->next++);
        if (api_await_pool(client->http, client->pool, err) < 0)
            return -1;
        int64_t start = now_ns();
        if (api_create(client->http, name, "{}", err) < 0 ||
            api_exec(client->http, name, client->echo, "hi", err) < 0)
            return -1;
        sample("claim", now_ns() - start);
        if (api_delete(client->http, name, err) < 0 || api_await_gone(client->http, name, err) < 0)
            return -1;
    }
    return 0;
}

static int measure_echo(struct client *client, int count, struct error *err)
{
    if (need_resident(client, err) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        int64_t start = now_ns();
        if (api_exec(client->http, resident, client->echo, "hi", err) < 0)
            return -1;
        sample("echo", now_ns() - start);
    }
    return 0;
}

static int measure_churn(struct client *client, int count, struct error *err)
{
    return run_crowd(client, CROWD_CHURN, "churn", count, err);
}

static int make_idle(struct client *client, int count, struct error *err)
{
    return run_crowd(client, CROWD_CREATE, "idle", count, err);
}

static int end_idle(struct client *client, int count, struct error *err)
{
    return run_crowd(client, CROWD_DELETE, "idle", count, err);
}

static const struct {
    const char *name;
    int (*run)(struct client *client, int count, struct error *err);
} verbs[] = {
    {"create", measure_create}, {"exec", measure_exec},
    {"read", measure_read},     {"write", measure_write},
    {"churn", measure_churn},   {"idle", make_idle},
    {"idle-end", end_idle},     {"claim", measure_claim},
    {"echo", measure_echo},     {"grow", grow},
    {"add", measure_add},       {"shrink", shrink},
    {"burst", measure_burst},
};

static int obey(struct client *client, const char *line, struct error *err)
{
    char name[32];
    int count;
    if (sscanf(line, "%31s %d", name, &count) != 2 || count < 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "not a command: %s", line);
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
        if (strcmp(verbs[i].name, name) != 0)
            continue;
        /* A new connection per command: while others have their turn the old one may time out. */
        if (http_open(client->http, client->address, err) < 0)
            return -1;
        struct http_request health = {.method = "GET", .path = "/health"};
        int r = http_expect(client->http, &health, 200, err);
        if (r == 0)
            r = verbs[i].run(client, count, err);
        http_close(client->http);
        return r;
    }
    return error_set(err, ERROR_INVALID_ARGUMENT, "no such command: %s", name);
}

static int serve(struct client *client)
{
    struct error err;
    char line[128];
    printf("ready\n");
    while (fgets(line, sizeof(line), stdin) != NULL) {
        if (obey(client, line, &err) < 0) {
            printf("error %s\n", err.message);
            return 1;
        }
        printf("done\n");
    }
    if (client->has_resident && http_open(client->http, client->address, &err) == 0) {
        api_delete(client->http, resident, &err);
        http_close(client->http);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 6) {
        fprintf(stderr, "usage: client ADDRESS KEY-FILE TRUE BUSYBOX [NETWORK]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct client client = {.address = argv[1], .true_path = argv[3], .pool = "host"};
    if (argc == 6) {
        api_network(argv[5]);
        client.pool = "host-network";
    }
    snprintf(client.echo, sizeof(client.echo), "%s echo hi", argv[4]);

    struct error err;
    size_t len;
    if (read_file(argv[2], client.key, sizeof(client.key) - 1, &len, &err) < 0) {
        printf("error %s\n", err.message);
        return 1;
    }
    client.key[strcspn(client.key, "\r\n")] = '\0';
    client.http = calloc(1, sizeof(*client.http));
    if (client.http == NULL)
        return 1;
    client.http->fd = -1;
    client.http->key = client.key;
    client.http->host = argv[1];
    int status = serve(&client);
    free(client.big);
    free(client.http);
    return status;
}
