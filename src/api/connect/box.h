/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A sandbox as E2B's and Scalebox's clients work in it: a user, whose home directory paths are
 * relative to, and the two services that both of them speak.
 */

#include "api/api.h"
#include "json/json.h"
#include "wire/messages.h"

struct connect_box {
    const struct api *api;
    const char *workspace;
    const char *sandbox;    /* its id */
    const char *actor;      /* who is written down as having done it */
    const char *user;       /* of the sandbox: who does it */
    const char *home;       /* that user's; connect_box_enter() finds it out */
    const char *attributes; /* prefix of the extended attributes that are a file's metadata */
};

/* The user of `Authorization: Basic`; `fallback` when there is none. UNAUTHORIZED when the field
 * cannot be read. */
int connect_user(struct http_exchange *x, const char *fallback, const char **ret_user,
                 struct error *err);

/* Fills in home, by the sandbox's passwd file. INVALID_ARGUMENT for a user that is not there,
 * NOT_RUNNING for a sandbox that is stopped. */
int connect_box_enter(struct connect_box *box, struct arena *arena, struct error *err);

/* A path as these clients mean it: absolute, or below the home directory; "~" is that too. */
int connect_path(const struct connect_box *box, struct arena *arena, const char *path,
                 const char **ret_path, struct error *err);

/* The services: one method of filesystem.Filesystem or process.Process. ROUTE_NOT_FOUND when there
 * is no such method. The box has been entered. */
int connect_filesystem(struct http_exchange *x, const struct connect_box *box, const char *method,
                       struct error *err);
int connect_process(struct http_exchange *x, const struct connect_box *box, const char *method,
                    struct error *err);

/* EntryInfo. `path` is the whole path. */
yyjson_mut_val *connect_entry_json(struct arena *arena, yyjson_mut_doc *doc, const char *path,
                                   const struct file_entry *entry, const char *attributes);
/* Adds "metadata" when there is any; attributes as in struct file_entry. */
void connect_add_metadata(yyjson_mut_doc *doc, yyjson_mut_val *object, struct slice attributes,
                          const char *prefix);
