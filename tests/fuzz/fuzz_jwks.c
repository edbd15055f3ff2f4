/* SPDX-License-Identifier: Apache-2.0 */

/* Key sets, as they come from a URL or a file, and the configuration that they stand in. A key that
 * was read has to be usable: to say no to a signature of any length. */

#include "auth/jwks.h"

#include <stdlib.h>

#include "auth/issuer_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void try_keys(const struct jwks *set)
{
    static const char zeros[600];
    static const size_t lengths[] = {0, 1, 32, 63, 64, 65, 256, 512};
    for (int algorithm = 0; algorithm < JWT_ALGORITHM_COUNT; algorithm++) {
        const struct jwk *key = jwks_find(set, NULL, (enum jwt_algorithm)algorithm);
        for (size_t i = 0; key != NULL && i < sizeof(lengths) / sizeof(lengths[0]); i++)
            require(!jwk_verifies(key, slice_of("text"), (struct slice){zeros, lengths[i]}) ||
                    algorithm == JWT_EDDSA); /* of a key of small order zeros are a signature */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice bytes = {(const char *)data, size};
    struct issuers *issuers = NULL;
    for (int secrets = 0; secrets < 2; secrets++) {
        struct error err = {0};
        struct jwks *set = NULL;
        if (jwks_parse(bytes, secrets != 0, &set, &err) == 0) {
            require(jwks_count(set) > 0 && jwks_count(set) <= JWKS_KEYS_MAX);
            try_keys(set);
            jwks_free(set);
        } else {
            require(err.code == ERROR_INVALID_ARGUMENT && set == NULL);
        }
    }
    if (issuers_parse(bytes, &issuers, NULL) == 0)
        issuers_unref(issuers);
    return 0;
}
