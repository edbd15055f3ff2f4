/* SPDX-License-Identifier: Apache-2.0 */

/* Lists of scopes, for keys and for tokens. */

#include "api/v0/scopes_json.h"

#include <string.h>

#include "auth/auth.h"

void scopes_add(yyjson_mut_doc *doc, yyjson_mut_val *object, unsigned scopes)
{
    char text[SCOPES_TEXT_SIZE];
    scopes_text(scopes, text);
    yyjson_mut_val *list = yyjson_mut_obj_add_arr(doc, object, "scopes");
    for (const char *at = text; *at != '\0';) {
        size_t len = strcspn(at, " ");
        yyjson_mut_arr_add_strncpy(doc, list, at, len);
        at += len + (at[len] == ' ');
    }
}

int scopes_read(yyjson_val *list, const char *known, unsigned *ret_scopes, struct error *err)
{
    unsigned scopes = 0;
    yyjson_val *item;
    size_t i, count;
    if (list == NULL) {
        *ret_scopes = SCOPE_READ | SCOPE_WRITE;
        return 0;
    }
    yyjson_arr_foreach(list, i, count, item)
    {
        unsigned one = 0;
        if (yyjson_is_str(item) && strstr(known, yyjson_get_str(item)) != NULL)
            one = scope_parse((struct slice){yyjson_get_str(item), yyjson_get_len(item)});
        if (one == 0)
            return error_set(err, ERROR_INVALID_ARGUMENT, "scopes[%zu] is none of %s", i, known);
        scopes |= one;
    }
    if (scopes == 0)
        return error_set(err, ERROR_INVALID_ARGUMENT,
                         "scopes is empty: leave it out for read and write");
    *ret_scopes = scopes;
    return 0;
}
