/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What E2B's clients wrote on a sandbox and Cella has no use for, kept as JSON text beside it: the
 * template's name, metadata of any form, the network as it was asked for.
 *
 * A sandbox that was not made by E2B's API has none, and can be used by its clients all the same.
 */

#include "json/json.h"
#include "sandbox/sandbox.h"

struct e2b_spec {
    const char *template_id; /* never NULL */
    yyjson_val *metadata;    /* an object of strings; NULL: none */
    yyjson_val *network;     /* as it was sent; NULL: none */
    bool secure;             /* the inside asks for the sandbox's token */
    bool internet;
    int64_t timeout_s;       /* as it was last set; 0: never */
    const char *snapshot;    /* this is no sandbox but a snapshot, with this name; NULL */
    const char *source;      /* … of the sandbox with this id */
    int64_t exec_timeout_ms; /* of an execution by /api/sandbox; 0: as usual there */
    yyjson_val *ports; /* that Scalebox's clients have listed (scalebox/ports.h); NULL: none */
};

/* text NULL: what holds for a sandbox of another API. Text that is broken counts as none. */
void e2b_spec_read(struct arena *arena, const char *text, struct e2b_spec *ret_spec);
const char *e2b_spec_text(struct arena *arena, const struct e2b_spec *spec);

/* network.maskRequestHost: what a program in the sandbox is told as the Host of requests to a port,
 * "${PORT}" being that; NULL: nothing else than usual. INVALID_ARGUMENT for what is no Host. */
int e2b_mask_check(yyjson_val *network, struct error *err);
const char *e2b_spec_mask(struct arena *arena, const struct e2b_spec *spec, uint16_t port);

/* Whether its ports are open to whoever comes. */
bool e2b_spec_is_public(const struct e2b_spec *spec);
bool e2b_is_secure(struct arena *arena, const char *text);
bool e2b_is_snapshot(struct arena *arena, const char *text);
