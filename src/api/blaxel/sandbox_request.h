/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The body of POST and PUT /v0/sandboxes. The object grows with every release of the clients, so
 * members that mean nothing here are no errors: those of `spec` are kept and shown again, others
 * are passed over. A member that is known has to be of the right type.
 */

#include "json/json.h"
#include "sandbox/sandbox.h"

struct blaxel_sandbox_request {
    const char *name; /* NULL, and so below: not given */
    const char *display_name;
    const char *external_id;
    const struct slice *labels; /* "key=value" list */
    const bool *enabled;
    const char *image;
    struct sandbox_resources resources;
    const struct slice *env;
    const char *spec;               /* what is kept of the spec, as text; NULL when none was sent */
    struct lifespan lifespan;       /* what it says of the sandbox's end */
    struct network_request network; /* of spec.network; nothing is given when it says nothing */
};

/*
 * body may be NULL. memory is in MB, and brings the cpu with it: a core for each 2048. created_ms:
 * of the sandbox, whose ttl counts from there. INVALID_ARGUMENT names the member; PAYLOAD_TOO_LARGE
 * when what is to be kept of the spec is over BLAXEL_SPEC_MAX.
 */
int blaxel_sandbox_request(struct arena *arena, yyjson_val *body, int64_t created_ms,
                           struct blaxel_sandbox_request *ret_request, struct error *err);

/* Takes the values of network.proxy.routing[].secrets out of a spec: they are write-only, and
 * nothing here uses them. */
void blaxel_drop_secrets(yyjson_mut_val *spec);

/* Adds the variables of a member "envs" that are marked as secret to those of a kept spec (NULL:
 * none). NULL when nothing changes. */
const char *blaxel_add_secret_marks(struct arena *arena, const char *spec, yyjson_val *object);

/* The member "envs" of an object, [{"name","value"}], as a "NAME=value" list; *ret_env is left
 * alone when there is none. */
int blaxel_envs(struct arena *arena, yyjson_val *object, const char *where,
                const struct slice **ret_env, struct error *err);
/* Lays `over` over *env: same names are replaced, others added. PAYLOAD_TOO_LARGE. */
int blaxel_merge_env(struct arena *arena, struct slice *env, struct slice over, struct error *err);
