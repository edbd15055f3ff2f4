/* SPDX-License-Identifier: Apache-2.0 */

/* Lines of an audit log that somebody has got at: whatever they are, no crash; what is written is
 * a line, and only what is a line is taken for one. */

#include "audit/chain.h"

#include <stdlib.h>
#include <string.h>

#include "audit/log.h"
#include "base/cleanup.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_written(struct slice text)
{
    struct audit_chain chain, reader;
    struct audit_line line;
    _cleanup_buf_ struct buf out = BUF_INIT(1 << 20);
    if (audit_chain_init(&chain, NULL) < 0 || audit_chain_init(&reader, NULL) < 0)
        abort();
    buf_adds(&out, "{\"seq\":1,\"time\":\"2026-01-02T03:04:05.678Z\"");
    audit_add_text(&out, "text", text, 1000);
    audit_chain_seal(&chain, &out, 0);
    struct slice written = {out.data, out.len - 1};
    if (memchr(written.data, '\n', written.len) != NULL || !audit_line_parse(written, &line) ||
        !audit_chain_follow(&reader, &line) || line.seq != 1)
        abort();
    audit_chain_release(&chain);
    audit_chain_release(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct audit_options options;
    struct audit_line line;
    struct slice text = {(const char *)data, size};
    if (audit_line_parse(text, &line) &&
        (line.seq == 0 || line.body.len >= size || line.time.len != AUDIT_TIME_LEN))
        abort();
    check_written(text);
    _cleanup_free_ char *copy = malloc(size + 1);
    if (copy == NULL)
        return 0;
    if (size > 0)
        memcpy(copy, data, size);
    copy[size] = '\0';
    if (audit_options_parse(copy, &options, NULL) == 0 && options.files < 2)
        abort();
    return 0;
}
