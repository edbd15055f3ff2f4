/* SPDX-License-Identifier: Apache-2.0 */

/*
 * From a JWT to a caller, and keeping the issuers' keys. A token whose key is not known may be the
 * first of a new key: the set is then asked for again, once for all who wait and not as often as
 * strangers like, so that tokens with made-up ids cost the issuer next to nothing.
 */

#include "auth/issuers.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "auth/issuer_config.h"
#include "auth/state.h"
#include "auth/token_cache.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/timetext.h"

enum { FETCH_WAIT_MS = 30 * 1000, LOOK_MS = 1000 };

int issuers_check(struct slice config, struct error *err)
{
    struct issuers *issuers;
    if (issuers_parse(config, &issuers, err) < 0)
        return -1;
    issuers_unref(issuers);
    return 0;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Keys that were fetched stay good for the same URL, if the same is believed of it. */
static void inherit(struct issuers *issuers, struct issuers *old)
{
    for (size_t i = 0; old != NULL && i < issuers->count; i++) {
        struct issuer *issuer = &issuers->items[i];
        struct issuer *before = issuers_find(old, issuer->name);
        if (before == NULL || before->url == NULL || issuer->url == NULL ||
            strcmp(before->url, issuer->url) != 0 ||
            !same_text(before->authorities, issuer->authorities) || before->fetching)
            continue;
        issuer->keys = before->keys;
        issuer->asked_ms = before->asked_ms;
        issuer->had_ms = before->had_ms;
        issuer->calm_ms = before->calm_ms;
        before->keys = NULL;
    }
}

int auth_set_issuers(struct auth *auth, struct slice config, struct loop *loop, issuer_fetch *fetch,
                     void *ctx, struct error *err)
{
    struct issuers *issuers;
    if (issuers_parse(config, &issuers, err) < 0)
        return -1;
    inherit(issuers, auth->issuers);
    issuers_unref(auth->issuers);
    auth->issuers = issuers;
    auth->loop = loop;
    auth->fetch = fetch;
    auth->fetch_ctx = ctx;
    token_cache_clear(&auth->verified);
    return 0;
}

bool auth_trusts(const struct auth *auth, const char *tag)
{
    for (size_t i = 0; auth->issuers != NULL && i < auth->issuers->count; i++)
        if (strcmp(auth->issuers->items[i].tag, tag) == 0)
            return true;
    return false;
}

/* --- keys from a URL --- */

static int64_t monotonic_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* They are to be fetched anew: after a failure soon, but not as often as tokens come. */
static bool is_old(const struct issuer *issuer)
{
    int64_t now = monotonic_ms(), failed_ms = JWKS_RETRY_S * 1000;
    if (issuer->keys == NULL || issuer->url == NULL || issuer->fetching ||
        now - issuer->had_ms < issuer->refresh_ms)
        return false;
    return now - issuer->asked_ms >=
           (issuer->refresh_ms < failed_ms ? issuer->refresh_ms : failed_ms);
}

/* An issuer that cannot be asked any more cannot take a key back, either: the last ones do not
 * count for ever. What is remembered of tokens goes with them. */
static void drop_stale(struct auth *auth, struct issuer *issuer)
{
    if (issuer->keys == NULL || issuer->url == NULL ||
        monotonic_ms() - issuer->had_ms < issuer->stale_ms)
        return;
    log_warn("the keys of the issuer %s count no more: they could not be had for %lld s",
             issuer->name, (long long)(issuer->stale_ms / 1000));
    jwks_free(issuer->keys);
    issuer->keys = NULL;
    token_cache_clear(&auth->verified);
}

/* Whether strangers may have it asked once more. */
static bool may_ask(struct issuer *issuer)
{
    int64_t now = monotonic_ms(), step = JWKS_RETRY_S * 1000;
    if (issuer->url == NULL || issuer->calm_ms - now > (JWKS_BURST - 1) * step)
        return false;
    issuer->calm_ms = (issuer->calm_ms > now ? issuer->calm_ms : now) + step;
    return true;
}

/* Replaces the keys, or leaves them as they are. */
static void fetch_keys(struct auth *auth, struct issuer *issuer)
{
    struct error err;
    struct jwks *fresh = NULL;
    char *body = NULL;
    size_t len = 0;
    issuer->fetching = true;
    issuer->asked_ms = monotonic_ms();
    if (auth->fetch(auth->fetch_ctx, issuer->url, issuer->authorities, JWKS_MAX, &body, &len,
                    &err) < 0 ||
        jwks_parse((struct slice){body, len}, false, &fresh, &err) < 0)
        log_warn("the keys of the issuer %s %s: %s", issuer->name,
                 issuer->keys == NULL ? "cannot be had" : "stay as they are", err.message);
    free(body);
    issuer->asked_ms = monotonic_ms();
    if (fresh != NULL) {
        if (issuer->keys == NULL || !jwks_equal(issuer->keys, fresh))
            token_cache_clear(&auth->verified);
        jwks_free(issuer->keys);
        issuer->keys = fresh;
        issuer->had_ms = issuer->asked_ms;
    }
    issuer->fetching = false;
    co_cond_wake_all(&issuer->fetched);
}

struct refresh {
    struct auth *auth;
    struct issuers *issuers;
    struct issuer *issuer;
};

static void refresh_run(void *arg)
{
    struct refresh refresh = *(struct refresh *)arg;
    free(arg);
    fetch_keys(refresh.auth, refresh.issuer);
    issuers_unref(refresh.issuers);
}

/* Beside the request that found them old, which goes on with what there is. */
static void refresh_keys(struct auth *auth, struct issuer *issuer)
{
    struct refresh *refresh = calloc(1, sizeof(*refresh));
    if (refresh == NULL)
        return;
    *refresh = (struct refresh){auth, auth->issuers, issuer};
    auth->issuers->references++;
    if (co_spawn(auth->loop, refresh_run, refresh, NULL, NULL) < 0) {
        issuers_unref(refresh->issuers);
        free(refresh);
    }
}

/* Fetches, or waits for whoever does. */
static void await_keys(struct auth *auth, struct issuer *issuer)
{
    if (issuer->fetching)
        (void)co_cond_wait(auth->loop, &issuer->fetched, FETCH_WAIT_MS, NULL);
    else if (may_ask(issuer))
        fetch_keys(auth, issuer);
}

void auth_refresh_issuers(struct auth *auth, int64_t now_ms)
{
    struct issuers *issuers = auth->issuers;
    /* The clock may have been set back. */
    if (issuers == NULL || llabs(now_ms - issuers->looked_ms) < LOOK_MS)
        return;
    issuers->looked_ms = now_ms;
    for (size_t i = 0; i < issuers->count; i++) {
        drop_stale(auth, &issuers->items[i]);
        if (is_old(&issuers->items[i]))
            refresh_keys(auth, &issuers->items[i]);
    }
}

/* NULL: there is none, with the error. */
static const struct jwk *find_key(struct auth *auth, struct issuer *issuer, const struct jwt *jwt,
                                  struct error *err)
{
    if (issuer->keys == NULL)
        await_keys(auth, issuer);
    const struct jwk *key =
        issuer->keys == NULL ? NULL : jwks_find(issuer->keys, jwt->key_id, jwt->algorithm);
    if (key == NULL && issuer->keys != NULL) {
        await_keys(auth, issuer);
        /* A new configuration may have taken the keys over meanwhile. */
        if (issuer->keys != NULL)
            key = jwks_find(issuer->keys, jwt->key_id, jwt->algorithm);
    }
    if (issuer->keys == NULL)
        error_set(err, ERROR_UNAVAILABLE,
                  "the keys of the token's issuer cannot be had: try again");
    else if (key == NULL)
        error_set(err, ERROR_UNAUTHORIZED,
                  "the token is not valid: its issuer has no key of its kid for its alg");
    return key;
}

/* --- judging --- */

static enum verdict judge(struct auth *auth, struct issuer *issuer, const struct jwt *jwt,
                          struct principal *ret_principal, int64_t *ret_ends_ms, struct error *err)
{
    int64_t expires_s;
    if ((issuer->algorithms & (1U << jwt->algorithm)) == 0) {
        error_set(err, ERROR_UNAUTHORIZED, "the token is not valid: its issuer does not use %s",
                  jwt_algorithm_name(jwt->algorithm));
        return VERDICT_WRONG;
    }
    const struct jwk *key = find_key(auth, issuer, jwt, err);
    if (key == NULL)
        return err->code == ERROR_UNAVAILABLE ? VERDICT_OVER : VERDICT_WRONG;
    if (!jwk_verifies(key, jwt->text, jwt->signature)) {
        error_set(err, ERROR_UNAUTHORIZED, "the token is not valid: its signature is wrong");
        return VERDICT_WRONG;
    }
    if (jwt_check_claims(jwt->claims, &issuer->rules, time_now_ms() / 1000, &expires_s, err) < 0 ||
        issuer_principal(issuer, jwt->claims, ret_principal, err) < 0)
        return VERDICT_OVER;
    ret_principal->expires_ms = expires_s * 1000;
    *ret_ends_ms = (expires_s + issuer->rules.leeway_s) * 1000;
    return VERDICT_RIGHT;
}

enum verdict auth_judge_jwt(struct auth *auth, const char *token, struct principal *ret_principal,
                            int64_t *ret_ends_ms, struct error *err)
{
    struct arena *arena = arena_new();
    struct issuers *issuers = auth->issuers;
    struct jwt jwt;
    struct error why;
    enum verdict verdict = VERDICT_WRONG;
    issuers->references++; /* the configuration may change while keys are waited for */
    if (jwt_parse(arena, slice_of(token), &jwt, &why) == 0) {
        yyjson_val *name = yyjson_obj_get(jwt.claims, "iss");
        struct issuer *issuer =
            yyjson_is_str(name) ? issuers_find(issuers, yyjson_get_str(name)) : NULL;
        if (issuer != NULL)
            verdict = judge(auth, issuer, &jwt, ret_principal, ret_ends_ms, &why);
        else
            error_set(&why, ERROR_UNAUTHORIZED,
                      "the token is neither this server's nor of an issuer that it trusts");
    }
    if (verdict == VERDICT_RIGHT && auth->issuers != issuers) {
        error_set(&why, ERROR_UNAVAILABLE,
                  "whose tokens are trusted has changed meanwhile: try again");
        verdict = VERDICT_OVER; /* it may be one that was removed for good reason */
    }
    if (verdict != VERDICT_RIGHT && err != NULL)
        *err = why;
    issuers_unref(issuers);
    arena_free(arena);
    return verdict;
}
