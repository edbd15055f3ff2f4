/* SPDX-License-Identifier: Apache-2.0 */

/* `cella sandbox token` and `cella sandbox revoke`: tokens that open one sandbox and nothing else.
 */

#include "cli/verbs.h"

#include "base/cleanup.h"
#include "cli/args.h"
#include "cli/client.h"
#include "cli/output.h"
#include "cli/table.h"

static int call(struct invocation *inv, const char *method, yyjson_mut_doc *body,
                yyjson_val **ret_root, struct error *err)
{
    _cleanup_buf_ struct buf target = BUF_INIT(TARGET_MAX);
    target_sandbox(inv->client, &target, args_word(inv->args, "NAME"), "/tokens");
    return client_json(inv->client, method, &target, body, 0, ret_root, err);
}

/* The token alone, for $(…). */
int verb_sandbox_token(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_mut_val *object;
    yyjson_mut_doc *doc = client_body(inv->client, &object);
    const char *span = args_option(inv->args, "expires-in", NULL);
    const char *scope = args_option(inv->args, "scope", NULL);
    yyjson_val *root;
    if (span != NULL)
        yyjson_mut_obj_add_str(doc, object, "expiresIn", span);
    if (scope != NULL)
        yyjson_mut_arr_add_str(doc, yyjson_mut_obj_add_arr(doc, object, "scopes"), scope);
    if (call(inv, "POST", doc, &root, err) < 0)
        return -1;
    return output_member(root, "/token", inv->json, err);
}

int verb_sandbox_revoke(struct invocation *inv, int *ret_status, struct error *err)
{
    yyjson_val *root;
    if (call(inv, "DELETE", NULL, &root, err) < 0)
        return -1;
    return output_member(root, "/message", inv->json, err);
}
