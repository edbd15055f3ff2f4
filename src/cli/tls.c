/* SPDX-License-Identifier: Apache-2.0 */

/* What a client needs to believe the server's certificate. */

#include <stdio.h>

#include "base/layout.h"
#include "base/limits.h"
#include "cli/args.h"
#include "cli/settings.h"
#include "cli/verbs.h"

int verb_tls_ca(struct invocation *inv, int *ret_status, struct error *err)
{
    char pem[TLS_PEM_MAX];
    if (settings_read(settings_data(inv->args), LAYOUT_TLS_CA, pem, sizeof(pem), err) < 0)
        return error_prefix(err, "a server with TLS makes it on its first start");
    printf("%s\n", pem);
    *ret_status = 0;
    return 0;
}
