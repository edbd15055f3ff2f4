/* SPDX-License-Identifier: Apache-2.0 */

/* Counting callers. */

#include "api/call_limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "auth/throttle.h"

#define SECOND_NS INT64_C(1000000000)

/* Addresses have one bucket for all classes; and there is one for lines of the audit log. */
enum { ANY_CLASS = ROUTE_CLASS_COUNT, LINES };

struct stream_owner {
    struct caller caller; /* known by its bytes alone */
    uint32_t open;
    UT_hash_handle hh;
};

struct workspace_limits {
    char name[64];
    struct limits_config config;
    UT_hash_handle hh;
};

void limits_init(struct limits *limits, const struct limits_config *config)
{
    *limits = (struct limits){.config = *config};
}

void limits_release(struct limits *limits)
{
    struct stream_owner *owner, *next;
    buckets_release(&limits->callers);
    buckets_release(&limits->addresses);
    HASH_ITER(hh, limits->owners, owner, next)
    {
        HASH_DELETE(hh, limits->owners, owner);
        free(owner);
    }
    while (limits->workspaces != NULL) {
        struct workspace_limits *own = limits->workspaces;
        HASH_DELETE(hh, limits->workspaces, own);
        free(own);
    }
}

/* --- of a workspace --- */

static struct workspace_limits *find_own(const struct limits *limits, const char *workspace)
{
    struct workspace_limits *own;
    HASH_FIND_STR(limits->workspaces, workspace, own);
    return own;
}

const struct limits_config *limits_of(const struct limits *limits, const char *workspace)
{
    const struct workspace_limits *own =
        limits->workspaces == NULL || workspace == NULL ? NULL : find_own(limits, workspace);
    return own == NULL ? &limits->config : &own->config;
}

const struct quotas *limits_quotas_of(const void *ctx, const char *workspace)
{
    return &limits_of(ctx, workspace)->quotas;
}

int limits_set_workspace(struct limits *limits, const char *workspace, const char *rates,
                         const char *quotas, struct error *err)
{
    struct workspace_limits *own = find_own(limits, workspace);
    struct limits_config config;
    if (limits_config_refine(&limits->config, rates, quotas, &config, err) < 0)
        return -1;
    if (rates[0] == '\0' && quotas[0] == '\0') {
        if (own != NULL)
            HASH_DELETE(hh, limits->workspaces, own);
        free(own);
        return 0;
    }
    if (own == NULL) {
        own = calloc(1, sizeof(*own));
        if (own == NULL)
            return error_sys(err, "keeping a workspace's limits");
        snprintf(own->name, sizeof(own->name), "%s", workspace);
        HASH_ADD_STR(limits->workspaces, name, own);
    }
    own->config = config;
    return 0;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* --- callers --- */

/* The first byte tells kinds apart; ids of keys and sandboxes are short. */
static struct caller caller_named(char kind, const char *id)
{
    struct caller caller = {.bytes = {(unsigned char)kind}};
    size_t len = strlen(id), most = BUCKET_OWNER_SIZE - 1;
    memcpy(caller.bytes + 1, id, len < most ? len : most);
    return caller;
}

struct caller caller_of_peer(const char *peer)
{
    struct peer_address address = peer_address(peer);
    struct caller caller = {.bytes = {'a'}};
    memcpy(caller.bytes + 1, address.bytes, sizeof(address.bytes));
    return caller;
}

struct caller caller_of_sandbox(const char *sandbox_id)
{
    return caller_named('s', sandbox_id);
}

/* What is too long to be its own name. */
static struct caller caller_hashed(char kind, const char *workspace, const char *name)
{
    uint64_t hash[2] = {UINT64_C(14695981039346656037), UINT64_C(1099511628211)};
    const char *const texts[] = {workspace, "/", name};
    for (size_t t = 0; t < 3; t++)
        for (const char *at = texts[t]; *at != '\0'; at++) /* FNV-1a, twice */
            for (size_t i = 0; i < 2; i++)
                hash[i] = (hash[i] ^ (unsigned char)*at) * UINT64_C(1099511628211);
    struct caller caller = {.bytes = {(unsigned char)kind}};
    memcpy(caller.bytes + 1, hash, sizeof(hash));
    return caller;
}

struct caller caller_of_principal(const struct principal *principal, const char *peer)
{
    /* Who holds a token of one sandbox does not use up what its maker's key may do. */
    if (principal->sandbox[0] != '\0')
        return caller_named('b', principal->sandbox);
    if (principal->key_id[0] != '\0')
        return caller_named('k', principal->key_id);
    if (principal->name[0] == '\0' || strcmp(principal->name, "anonymous") == 0)
        return caller_of_peer(peer);
    /* Whoever was let in by somebody else's word has a name and no key of ours. */
    return caller_hashed('n', principal->workspace, principal->name);
}

struct caller caller_in(struct caller caller, const char *workspace)
{
    snprintf(caller.workspace, sizeof(caller.workspace), "%s", workspace);
    return caller;
}

/* Somebody without a key, in a workspace with limits of its own: of an address, which has a bucket
 * there that others do not share. */
static struct caller caller_of_guest(const struct caller *caller)
{
    char text[2 * BUCKET_OWNER_SIZE + 1];
    for (size_t i = 0; i < BUCKET_OWNER_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", caller->bytes[i]);
    return caller_in(caller_hashed('a', caller->workspace, text), caller->workspace);
}

/* All of a workspace together. */
static struct caller caller_of_workspace(const char *workspace)
{
    return caller_hashed('w', workspace, "");
}

bool limits_counts(const struct limits *limits, const char *workspace, const char *peer)
{
    if (limits_of(limits, workspace)->off)
        return false;
    return limits->config.local || !peer_is_local(peer);
}

/* --- rates --- */

static int64_t seconds_up(int64_t ns)
{
    return (ns + SECOND_NS - 1) / SECOND_NS;
}

static void set_fields(struct http_exchange *x, const struct bucket_rate *rate,
                       const struct bucket_state *state, const char *what)
{
    http_set_header(x, "RateLimit-Limit", "%u", rate->burst);
    http_set_header(x, "RateLimit-Remaining", "%u", state->remaining);
    http_set_header(x, "RateLimit-Reset", "%lld", (long long)seconds_up(state->full_ns));
    http_set_header(x, "RateLimit-Policy", "\"%s\";q=%u;w=%u", what, rate->burst,
                    (rate->burst + rate->per_second - 1) / rate->per_second);
    if (!state->allowed)
        http_set_header(x, "Retry-After", "%lld", (long long)seconds_up(state->wait_ns));
}

static int refuse(const struct bucket_rate *rate, const struct bucket_state *state,
                  const char *what, struct error *err)
{
    return error_set(err, ERROR_RATE_LIMITED,
                     "too many requests (%s): %u a second and %u at once are allowed; try again in "
                     "%lld s",
                     what, rate->per_second, rate->burst, (long long)seconds_up(state->wait_ns));
}

/* x NULL: there is nobody to be told by fields. */
static int admit_address(struct limits *limits, const char *peer, struct http_exchange *x,
                         struct error *err)
{
    const struct bucket_rate *rate = &limits->config.address;
    if (rate->per_second == 0 || !limits_counts(limits, NULL, peer))
        return 0;
    struct caller caller = caller_of_peer(peer);
    struct bucket_name name = {.what = ANY_CLASS};
    memcpy(name.owner, caller.bytes, sizeof(name.owner));
    struct bucket_state state = buckets_take(&limits->addresses, &name, rate, now_ns());
    if (state.allowed)
        return 0;
    limits->counters.limited_address++;
    if (x != NULL)
        set_fields(x, rate, &state, "address");
    return refuse(rate, &state, "address", err);
}

static struct bucket_state take_of(struct limits *limits, const struct caller *caller,
                                   uint32_t what, const struct bucket_rate *rate)
{
    struct bucket_name name = {.what = what};
    memcpy(name.owner, caller->bytes, sizeof(name.owner));
    /* Addresses are many, and easily had: they must not push out keys. */
    struct buckets *table = caller->bytes[0] == 'a' ? &limits->addresses : &limits->callers;
    return buckets_take(table, &name, rate, now_ns());
}

int limits_admit_address(struct limits *limits, struct http_exchange *x, struct error *err)
{
    return admit_address(limits, http_request(x)->peer, x, err);
}

/* rate->per_second is not 0. */
static struct bucket_state take(struct limits *limits, struct caller caller, enum route_class class,
                                const struct bucket_rate *rate)
{
    struct bucket_state state = take_of(limits, &caller, class, rate);
    limits->counters.limited_key[class] += !state.allowed;
    return state;
}

bool limits_take_line(struct limits *limits, struct caller caller)
{
    static const struct bucket_rate rate = {LIMITS_LINES_PER_S, LIMITS_LINES_AT_ONCE};
    return take_of(limits, &caller, LINES, &rate).allowed;
}

/* NULL: it is not counted. */
static const struct bucket_rate *rate_for(const struct limits *limits, const char *peer,
                                          const struct caller *caller, enum route_class class)
{
    const struct limits_config *config = limits_of(limits, caller->workspace);
    const struct bucket_rate *rate = &config->classes[class];
    bool counted = rate->per_second != 0 && limits_counts(limits, caller->workspace, peer);
    return counted ? rate : NULL;
}

int limits_admit(struct limits *limits, struct http_exchange *x, struct caller caller,
                 enum route_class class, struct error *err)
{
    const struct bucket_rate *rate = rate_for(limits, http_request(x)->peer, &caller, class);
    if (rate == NULL)
        return 0;
    struct bucket_state state = take(limits, caller, class, rate);
    set_fields(x, rate, &state, route_class_name(class));
    return state.allowed ? 0 : refuse(rate, &state, route_class_name(class), err);
}

int limits_admit_guest(struct limits *limits, struct http_exchange *x, struct caller caller,
                       enum route_class class, struct error *err)
{
    if (limits_of(limits, caller.workspace) == &limits->config)
        return 0;
    return limits_admit(limits, x, caller_of_guest(&caller), class, err);
}

int limits_admit_more(struct limits *limits, const char *peer, struct caller caller,
                      enum route_class class, struct error *err)
{
    const struct bucket_rate *rate = rate_for(limits, peer, &caller, class);
    if (rate == NULL)
        return 0;
    struct bucket_state state = take(limits, caller, class, rate);
    return state.allowed ? 0 : refuse(rate, &state, route_class_name(class), err);
}

int limits_admit_connection(struct limits *limits, const char *peer, const char *workspace,
                            struct error *err)
{
    struct caller caller = caller_of_peer(peer), guest = caller_in(caller, workspace);
    if (admit_address(limits, peer, NULL, err) < 0 ||
        limits_admit_more(limits, peer, caller, ROUTE_CLASS_PROXY, err) < 0)
        return -1;
    if (limits_of(limits, workspace) == &limits->config)
        return 0;
    return limits_admit_more(limits, peer, caller_of_guest(&guest), ROUTE_CLASS_PROXY, err);
}

struct bucket_state limits_look(const struct limits *limits, struct caller caller,
                                enum route_class class)
{
    const struct bucket_rate *rate = &limits_of(limits, caller.workspace)->classes[class];
    struct bucket_name name = {.what = class};
    memcpy(name.owner, caller.bytes, sizeof(name.owner));
    if (rate->per_second == 0)
        return (struct bucket_state){.allowed = true};
    return buckets_look(caller.bytes[0] == 'a' ? &limits->addresses : &limits->callers, &name, rate,
                        now_ns());
}

/* --- streams --- */

static struct stream_owner *find_owner(const struct limits *limits, const struct caller *caller)
{
    struct stream_owner *owner;
    HASH_FIND(hh, limits->owners, caller->bytes, sizeof(caller->bytes), owner);
    return owner;
}

static uint32_t open_of(const struct limits *limits, struct caller caller)
{
    const struct stream_owner *owner = find_owner(limits, &caller);
    return owner == NULL ? 0 : owner->open;
}

/* One more, or one less. */
static int count(struct limits *limits, struct caller caller, bool more, struct error *err)
{
    struct stream_owner *owner = find_owner(limits, &caller);
    if (owner == NULL) {
        owner = calloc(1, sizeof(*owner));
        if (owner == NULL)
            return error_sys(err, "counting a stream");
        owner->caller = caller;
        HASH_ADD(hh, limits->owners, caller.bytes, sizeof(owner->caller.bytes), owner);
    }
    owner->open += more ? 1 : -1U;
    if (owner->open > 0)
        return 0;
    HASH_DELETE(hh, limits->owners, owner);
    free(owner);
    return 0;
}

static int too_many(struct limits *limits, const char *whose, uint64_t most, struct error *err)
{
    limits->counters.streams_refused++;
    return error_set(err, ERROR_TOO_MANY_STREAMS,
                     "%s %llu streams (events, logs, terminals, WebSockets) are open, and more may "
                     "not be: close one first",
                     whose, (unsigned long long)most);
}

int limits_stream_begin(struct limits *limits, struct caller caller, struct error *err)
{
    const struct limits_config *config = limits_of(limits, caller.workspace);
    uint64_t all = limits->config.quotas.of[QUOTA_STREAMS];
    uint64_t in = config == &limits->config ? 0 : config->quotas.of[QUOTA_STREAMS];
    uint64_t each = config->quotas.of[QUOTA_STREAMS_PER_KEY];
    if (all != 0 && limits->streams >= all)
        return too_many(limits, "the server's", all, err);
    if (in != 0 && limits_streams_in(limits, caller.workspace) >= in)
        return too_many(limits, "the workspace's", in, err);
    if (each != 0 && open_of(limits, caller) >= each)
        return too_many(limits, "this caller's", each, err);
    if (count(limits, caller, true, err) < 0)
        return -1;
    if (caller.workspace[0] != '\0' &&
        count(limits, caller_of_workspace(caller.workspace), true, err) < 0) {
        (void)count(limits, caller, false, NULL);
        return -1;
    }
    limits->streams++;
    return 0;
}

void limits_stream_end(struct limits *limits, struct caller caller)
{
    limits->streams--;
    (void)count(limits, caller, false, NULL);
    if (caller.workspace[0] != '\0')
        (void)count(limits, caller_of_workspace(caller.workspace), false, NULL);
}

uint32_t limits_streams_of(const struct limits *limits, struct caller caller)
{
    return open_of(limits, caller);
}

uint32_t limits_streams_in(const struct limits *limits, const char *workspace)
{
    return open_of(limits, caller_of_workspace(workspace));
}

struct limits_counters limits_counters_of(const struct limits *limits)
{
    struct limits_counters counters = limits->counters;
    counters.buckets = HASH_CNT(hh, limits->callers.items) + HASH_CNT(hh, limits->addresses.items);
    counters.buckets_evicted = limits->callers.evicted + limits->addresses.evicted;
    counters.streams = limits->streams;
    return counters;
}
