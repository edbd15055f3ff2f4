/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `cella top`: what every sandbox uses, drawn again every few seconds until somebody presses q.
 * Into a pipe, or with --once, it is one table.
 */

#include "cli/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/screen.h"
#include "cli/table.h"

enum { INTERVAL_DEFAULT_S = 2, INTERVAL_MAX_S = 3600, HEADER_ROWS = 3 };

/* What it can be sorted by. The largest is first, but for names. */
static const struct sort {
    char key;
    const char *name; /* also the member's */
} sorts[] = {{'c', "cpu"}, {'m', "memory"}, {'d', "disk"}, {'p', "processes"}, {'n', "name"}};

struct top {
    struct invocation *inv;
    const struct sort *sort;
};

/* --- a table --- */

static int compare(const void *left, const void *right, void *arg)
{
    const struct sort *sort = arg;
    yyjson_val *a = *(yyjson_val *const *)left, *b = *(yyjson_val *const *)right;
    if (sort->key != 'n') {
        /* One without the figure comes after one with zero. */
        yyjson_val *x = yyjson_obj_get(a, sort->name), *y = yyjson_obj_get(b, sort->name);
        double m = x == NULL ? -1 : yyjson_get_num(x), n = y == NULL ? -1 : yyjson_get_num(y);
        if (m != n)
            return m > n ? -1 : 1;
    }
    return strcmp(client_text(a, "/name").data, client_text(b, "/name").data);
}

static void add_amount(struct table *table, yyjson_val *item, const char *name)
{
    char used[SIZE_TEXT_MAX], limit[SIZE_TEXT_MAX];
    yyjson_val *value = yyjson_obj_get(item, name);
    if (value == NULL) {
        table_text(table, "");
        return;
    }
    size_text(yyjson_get_uint(value), used);
    size_text(yyjson_get_uint(yyjson_obj_get(yyjson_obj_get(item, "limits"), name)), limit);
    table_printf(table, "%s / %s", used, limit);
}

static void add_rate(struct table *table, yyjson_val *item, const char *name)
{
    char text[SIZE_TEXT_MAX] = "";
    yyjson_val *rate = yyjson_obj_get(yyjson_obj_get(item, "network"), name);
    if (rate != NULL)
        size_text(yyjson_get_uint(rate), text);
    table_text(table, text);
}

static void add_row(struct table *table, yyjson_val *item, bool networks)
{
    yyjson_val *cpu = yyjson_obj_get(item, "cpu");
    yyjson_val *processes = yyjson_obj_get(item, "processes");
    struct slice name = client_text(item, "/name"), group = client_text(item, "/group");
    if (group.len == 0)
        table_cell(table, name);
    else
        table_printf(table, "%.*s/%.*s", (int)group.len, group.data, (int)name.len, name.data);
    table_cell(table, client_text(item, "/status"));
    if (cpu == NULL)
        table_text(table, "");
    else
        table_printf(table, "%.1f%%", yyjson_get_num(cpu) * 100);
    add_amount(table, item, "memory");
    add_amount(table, item, "disk");
    if (processes == NULL)
        table_text(table, "");
    else
        table_printf(table, "%llu", (unsigned long long)yyjson_get_uint(processes));
    if (!networks)
        return;
    add_rate(table, item, "inRate");
    add_rate(table, item, "outRate");
}

/* at_most 0: all of them. */
static void add_rows(struct buf *out, yyjson_val *root, const struct sort *sort, size_t at_most)
{
    static const char *const titles[] = {"NAME", "STATUS",    "CPU",  "MEMORY",
                                         "DISK", "PROCESSES", "IN/S", "OUT/S"};
    bool networks = false; /* any of them has one */
    yyjson_val *list = yyjson_obj_get(root, "sandboxes"), *item;
    size_t i, count, shown = yyjson_arr_size(list);
    _cleanup_free_ yyjson_val **items = calloc(shown + 1, sizeof(yyjson_val *));
    if (items == NULL)
        return;
    yyjson_arr_foreach(list, i, count, item)
    {
        items[i] = item;
        networks |= yyjson_obj_get(item, "network") != NULL;
    }
    _cleanup_table_ struct table *table =
        table_new(titles, networks ? ARRAY_LEN(titles) : ARRAY_LEN(titles) - 2);
    qsort_r(items, shown, sizeof(items[0]), compare, (void *)sort);
    if (at_most > 0 && shown > at_most)
        shown = at_most;
    for (i = 0; i < shown; i++)
        add_row(table, items[i], networks);
    table_write(table, out);
}

/* --- asking --- */

/* With a client of its own, whose memory goes with it: this may run for days. */
static int ask(const struct invocation *inv, struct client **ret_client, yyjson_val **ret_root,
               struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    struct client *client;
    buf_adds(&target, "/v0/metrics");
    if (client_new(client_loop(inv->client), client_settings(inv->client), &client, err) < 0)
        return -1;
    if (client_json(client, "GET", &target, NULL, 0, ret_root, err) < 0) {
        client_free(client);
        return -1;
    }
    *ret_client = client;
    return 0;
}

static void add_header(struct buf *out, yyjson_val *root, const struct sort *sort)
{
    yyjson_val *list = yyjson_obj_get(root, "sandboxes"), *item;
    size_t i, count, running = 0;
    double cpu = 0, memory = 0;
    char text[SIZE_TEXT_MAX];
    yyjson_arr_foreach(list, i, count, item)
    {
        running += slice_eq(client_text(item, "/status"), slice_of("running"));
        cpu += yyjson_get_num(yyjson_obj_get(item, "cpu"));
        memory += yyjson_get_num(yyjson_obj_get(item, "memory"));
    }
    size_text((uint64_t)memory, text);
    buf_addf(out, "%llu sandboxes, %zu running: %.2f cores, %s\n",
             (unsigned long long)yyjson_get_uint(yyjson_obj_get(root, "total")), running, cpu,
             text);
    buf_addf(out, "by %s; c m d p n: sort, q: quit\n\n", sort->name);
}

/* One page. A server that does not answer for a moment is nothing to give up for. */
static int draw(const struct top *top, bool first, struct error *err)
{
    _cleanup_buf_ struct buf page = BUF_INIT(OUTPUT_MAX);
    struct client *client = NULL;
    yyjson_val *root;
    struct error why;
    if (ask(top->inv, &client, &root, &why) == 0) {
        size_t rows = screen_rows();
        add_header(&page, root, top->sort);
        add_rows(&page, root, top->sort, rows > HEADER_ROWS + 1 ? rows - HEADER_ROWS - 1 : 1);
    } else if (first) {
        *err = why;
        return -1;
    } else {
        text_add_plain(&page, slice_of(why.message));
        buf_adds(&page, "\n\nq: quit\n");
    }
    client_free(client);
    return screen_draw(&page, err);
}

static int live(struct top *top, int64_t interval_ms, struct error *err)
{
    struct loop *loop = client_loop(top->inv->client);
    _cleanup_(screen_close) struct screen screen = {0};
    struct client *client;
    yyjson_val *root;
    /* An error is easier to read on the page that stays. */
    if (ask(top->inv, &client, &root, err) < 0)
        return -1;
    client_free(client);
    if (screen_open(&screen, loop, err) < 0 || draw(top, true, err) < 0)
        return -1;
    for (;;) {
        int key = screen_key(&screen, loop, interval_ms);
        if (key < 0 || key == 'q' || key == 'Q')
            return 0;
        for (size_t i = 0; i < ARRAY_LEN(sorts); i++)
            if (sorts[i].key == key)
                top->sort = &sorts[i];
        if (draw(top, false, err) < 0)
            return -1;
    }
}

int verb_top(struct invocation *inv, int *ret_status, struct error *err)
{
    const char *by = args_option(inv->args, "sort", "cpu");
    uint64_t interval = args_number(inv->args, "interval", INTERVAL_DEFAULT_S);
    struct top top = {.inv = inv, .sort = &sorts[0]};
    for (size_t i = 0; i < ARRAY_LEN(sorts); i++)
        if (strcmp(sorts[i].name, by) == 0)
            top.sort = &sorts[i];
    if (interval < 1 || interval > INTERVAL_MAX_S)
        return error_set(err, ERROR_INVALID_ARGUMENT, "--interval: 1 to %d seconds",
                         INTERVAL_MAX_S);
    if (!inv->json && !args_flag(inv->args, "once") && screen_is_terminal() &&
        isatty(STDIN_FILENO) == 1)
        return live(&top, (int64_t)interval * 1000, err);

    _cleanup_buf_ struct buf out = BUF_INIT(OUTPUT_MAX);
    struct client *client;
    yyjson_val *root;
    if (ask(inv, &client, &root, err) < 0)
        return -1;
    if (!inv->json)
        add_rows(&out, root, top.sort, 0);
    int rc = inv->json ? output_json(root, err) : output_buf(&out, err);
    client_free(client);
    return rc;
}
