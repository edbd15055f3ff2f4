/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Messages of the Connect services as a stranger writes them: a field is read, or refused with its
 * name, and what was read keeps what message.h promises.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api/connect/message.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

/* A reader says no in one way only, and of which field: `part` is in every spelling of it. */
static bool took(int rc, const struct error *err, const char *part)
{
    if (rc == 0)
        return true;
    CHECK(err->code == ERROR_INVALID_ARGUMENT && strstr(err->message, part) != NULL);
    return false;
}

static void read_scalars(yyjson_val *message)
{
    static const struct message_enum signals[] = {{"SIGNAL_SIGTERM", 15}, {"SIGNAL_SIGKILL", 9}};
    struct error err = {0};
    const char *text = "unset";
    uint64_t number = 17;
    bool flag = false;
    int signal = 0;
    if (took(message_text(message, "", "watcherId", &text, &err), &err, "watcher"))
        CHECK(text != NULL);
    if (took(message_uint(message, "a", "pid", 5, 70000, &number, &err), &err, "a.pid"))
        CHECK(number >= 5 && number <= 70000);
    took(message_bool(message, "", "includeEntry", &flag, &err), &err, "include");
    if (took(message_enum(message, "", "signal", signals, ARRAY_LEN(signals), &signal, &err), &err,
             "signal"))
        CHECK(signal == 0 || signal == 9 || signal == 15);
}

/* What was decoded is what its encoding decodes to again. */
static void read_bytes(struct arena *arena, yyjson_val *message)
{
    struct error err = {0};
    struct slice bytes = {0}, again = {0};
    if (!took(message_bytes(arena, message, "input", "stdin", &bytes, &err), &err, "input.stdin") ||
        bytes.data == NULL)
        return;
    CHECK(json_base64_decode(arena, json_base64_encode(arena, bytes), &again, NULL) == 0);
    CHECK(slice_eq(bytes, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    yyjson_val *root, *inner = NULL, *list = NULL;
    struct error err = {0};
    struct slice text = {arena_dup(arena, data, size), size};
    if (json_parse(arena, text, &root, NULL) == 0 && yyjson_is_obj(root)) {
        read_scalars(root);
        read_bytes(arena, root);
        if (took(message_object(root, "", "process", &inner, &err), &err, "process"))
            read_scalars(inner); /* NULL is fine */
        if (took(message_array(root, "", "args", &list, &err), &err, "args"))
            CHECK(list == NULL || yyjson_is_arr(list));
    }
    arena_free(arena);
    return 0;
}
