/* SPDX-License-Identifier: Apache-2.0 */

/* From a credential to a caller. */

#include "api/authorize.h"

#include "api/credential.h"

int api_authorize(struct http_exchange *x, unsigned flags, struct api_call *call, struct error *err)
{
    struct auth *auth = call->api->auth;
    const char *peer = http_request(x)->peer;
    struct credential credential;
    if (credential_find(x, flags, &credential, err) == 0 &&
        auth_check(auth, credential.text, peer, flags, &call->principal, err) == 0) {
        call->credential_field = credential.field;
        return 0;
    }
    if (err->code == ERROR_UNAUTHORIZED)
        http_set_header(x, "WWW-Authenticate", "Bearer realm=\"cella\"");
    return -1;
}
