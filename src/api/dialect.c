/* SPDX-License-Identifier: Apache-2.0 */

/* Which paths belong to whom. */

#include "api/dialect.h"

#include <string.h>

#include "api/aisandbox/errors.h"
#include "api/aisandbox/routes.h"
#include "api/blaxel/errors.h"
#include "api/blaxel/routes.h"
#include "api/e2b/errors.h"
#include "api/e2b/routes.h"
#include "api/routes.h"
#include "api/scalebox/errors.h"
#include "api/scalebox/routes.h"
#include "base/cleanup.h"

const struct dialect dialect_cella = {api_routes, &api_route_count, NULL, "cella"};
const struct dialect dialect_blaxel = {blaxel_routes, &blaxel_route_count, blaxel_reply_error,
                                       "blaxel"};
const struct dialect dialect_blaxel_box = {blaxel_box_routes, &blaxel_box_route_count,
                                           blaxel_box_reply_error, "blaxel"};
const struct dialect dialect_preview = {preview_routes, &preview_route_count,
                                        blaxel_box_reply_error, "blaxel"};

const struct dialect dialect_e2b = {e2b_routes, &e2b_route_count, e2b_reply_error, "e2b"};
const struct dialect dialect_e2b_envd = {e2b_envd_routes, &e2b_envd_route_count,
                                         e2b_envd_reply_error, "e2b-envd", true};

const struct dialect dialect_scalebox = {scalebox_routes, &scalebox_route_count,
                                         scalebox_reply_error, "scalebox"};
const struct dialect dialect_scalebox_box = {scalebox_box_routes, &scalebox_box_route_count,
                                             scalebox_box_reply_error, "scalebox-box", true};

const struct dialect dialect_aisandbox = {aisandbox_routes, &aisandbox_route_count,
                                          aisandbox_reply_error, "aisandbox"};

const struct dialect *const dialects[] = {
    &dialect_cella,    &dialect_blaxel,   &dialect_blaxel_box,   &dialect_preview,  &dialect_e2b,
    &dialect_e2b_envd, &dialect_scalebox, &dialect_scalebox_box, &dialect_aisandbox};
const size_t dialect_count = ARRAY_LEN(dialects);

/* The control plane's resources, below /v0. The seed's are in the singular. */
static const char *const blaxel_resources[] = {"sandboxes", "volumes", "drives", "images",
                                               "snapshots"};

/* The first segments of E2B's. */
static const char *const e2b_firsts[] = {"v2",        "v3",      "sandboxes",     "snapshots",
                                         "templates", "volumes", "volumecontent", "secrets"};

static bool takes(const char **path, const char *segment)
{
    size_t len = strlen(segment);
    if (**path != '/' || strncmp(*path + 1, segment, len) != 0)
        return false;
    const char *rest = *path + 1 + len;
    if (*rest != '/' && *rest != '\0')
        return false;
    *path = rest;
    return true;
}

const struct dialect *dialect_of(const char *path)
{
    if (takes(&path, "v0")) {
        for (size_t i = 0; i < ARRAY_LEN(blaxel_resources); i++)
            if (takes(&path, blaxel_resources[i]))
                return &dialect_blaxel;
        return &dialect_cella;
    }
    if (takes(&path, "api"))
        return &dialect_aisandbox;
    if (takes(&path, "preview"))
        return &dialect_preview;
    if (takes(&path, "v1"))
        return &dialect_scalebox;
    if (scalebox_box_path(path))
        return &dialect_scalebox_box;
    if (takes(&path, "files"))
        return &dialect_e2b_envd;
    for (size_t i = 0; i < ARRAY_LEN(e2b_firsts); i++)
        if (takes(&path, e2b_firsts[i]))
            return &dialect_e2b;
    if (*path == '/')
        path += 1 + strcspn(path + 1, "/");
    return takes(&path, "sandboxes") ? &dialect_blaxel_box : &dialect_cella;
}
