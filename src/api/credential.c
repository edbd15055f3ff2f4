/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finding the one credential of a request. Of two that differ none is chosen: which of them a proxy
 * or a client library added is not ours to guess, and a guess could act as the wrong caller. What
 * was sent is never repeated in a message.
 */

#include "api/credential.h"

#include <string.h>
#include <strings.h>

#include "auth/auth.h"
#include "auth/workspaces.h"
#include "base/cleanup.h"

/* In the order in which they count where somebody else's Authorization may come along. */
static const struct credential_field {
    const char *name;
    bool bearer;   /* "Bearer <credential>", or else the credential itself */
    bool forwards; /* may belong to whoever is behind a ROUTE_FORWARDS */
} fields[] = {
    {"X-Blaxel-Authorization", true, false},
    {"X-Api-Key", false, false},
    {"Authorization", true, true},
};

static const struct credential_field *field_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        if (strcasecmp(fields[i].name, name) == 0)
            return &fields[i];
    return NULL;
}

static int conflict(const char *one, const char *two, struct error *err)
{
    if (strcmp(one, two) == 0)
        return error_set(err, ERROR_CONFLICTING_CREDENTIALS,
                         "the request has %s twice, with different values: send one", one);
    return error_set(err, ERROR_CONFLICTING_CREDENTIALS,
                     "%s and %s hold different keys: send one of them", one, two);
}

/* Takes one more credential; *place is where the one before it was found. */
static int take(struct arena *arena, struct slice text, const char *place, const char **from,
                struct credential *found, struct error *err)
{
    if (found->text == NULL) {
        found->text = arena_dup(arena, text.data, text.len);
        *from = place;
        return 0;
    }
    return slice_eq(slice_of(found->text), text) ? 0 : conflict(*from, place, err);
}

static int take_field(struct http_exchange *x, const struct http_header *header,
                      const struct credential_field *field, bool optional, const char **from,
                      struct credential *found, struct error *err)
{
    if (header->value[0] == '\0') /* a client whose key is not set: as if it were not there */
        return 0;
    struct slice text = field->bearer ? auth_bearer(header->value) : slice_of(header->value);
    if (text.data == NULL)
        return optional ? 0
                        : error_set(err, ERROR_UNAUTHORIZED,
                                    "the %s field holds no key: send \"%s: Bearer <key>\"",
                                    field->name, field->name);
    bool first = found->text == NULL;
    if (take(http_arena(x), text, field->name, from, found, err) < 0)
        return -1;
    if (first)
        found->field = field->name;
    return 0;
}

/* The fields of one pass: those that are ours for certain, or the one that may be somebody's. */
static int take_fields(struct http_exchange *x, bool forwards, bool optional, const char **from,
                       struct credential *found, struct error *err)
{
    const struct http_request *request = http_request(x);
    for (size_t i = 0; i < request->header_count; i++) {
        const struct credential_field *field = field_of(request->headers[i].name);
        if (field != NULL && field->forwards == forwards &&
            take_field(x, &request->headers[i], field, optional, from, found, err) < 0)
            return -1;
    }
    return 0;
}

int credential_find(struct http_exchange *x, unsigned flags, struct credential *ret_credential,
                    struct error *err)
{
    struct credential found = {NULL, NULL};
    const char *from = NULL, *query = NULL;
    bool forwarded = (flags & ROUTE_FORWARDS) != 0;
    if ((flags & ROUTE_TOKEN_IN_QUERY) != 0 && http_query(x, "token", &query, err) < 0)
        return -1;
    if (take_fields(x, false, false, &from, &found, err) < 0)
        return -1;
    if (query != NULL && query[0] != '\0' &&
        take(http_arena(x), slice_of(query), "?token=", &from, &found, err) < 0)
        return -1;
    if ((!forwarded || found.text == NULL) &&
        take_fields(x, true, forwarded, &from, &found, err) < 0)
        return -1;
    *ret_credential = found;
    return 0;
}

int credential_workspace(struct http_exchange *x, const char **ret_name, struct error *err)
{
    static const char *const names[] = {"X-Cella-Workspace", "X-Blaxel-Workspace"};
    const struct http_request *request = http_request(x);
    const char *found = NULL;
    for (size_t i = 0; i < request->header_count; i++)
        for (size_t n = 0; n < ARRAY_LEN(names); n++) {
            const char *value = request->headers[i].value;
            if (strcasecmp(request->headers[i].name, names[n]) != 0 || value[0] == '\0')
                continue;
            if (found != NULL &&
                strcmp(workspace_canonical(found), workspace_canonical(value)) != 0)
                return error_set(err, ERROR_CONFLICTING_CREDENTIALS,
                                 "the request names two workspaces, \"%.63s\" and \"%.63s\"", found,
                                 value);
            found = value;
        }
    *ret_name = found;
    return 0;
}
