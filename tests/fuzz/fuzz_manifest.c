/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The list of files that lies beside a history: whatever is in it, no crash; what is taken for one
 * is in order, has only paths that git could have, and is the same after it was written again. A
 * file with a wrong check is refused at once, so the input gets a right one.
 */

#include "sandbox/history_manifest.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sandbox/file_tree.h"
#include "sandbox/history_rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool truth)
{
    if (!truth)
        abort();
}

static void check_same(const struct manifest *a, const struct manifest *b)
{
    require(a->count == b->count && a->rules == b->rules && strcmp(a->commit, b->commit) == 0);
    for (size_t i = 0; i < a->count; i++) {
        const struct tracked *x = &a->items[i], *y = &b->items[i];
        require(strcmp(x->path, y->path) == 0 && x->type == y->type && x->size == y->size &&
                x->has_blob == y->has_blob && tracked_same_attributes(x, y));
        require(i == 0 || file_tree_compare(a->items[i - 1].path, x->path) < 0);
        require(history_manifest_find(a, x->path) == x);
    }
}

static void check_read(struct slice text)
{
    _cleanup_manifest_ struct manifest m, again;
    _cleanup_buf_ struct buf out = BUF_INIT(64 << 20);
    struct error err = {0};
    history_manifest_init(&m);
    history_manifest_init(&again);
    if (history_manifest_decode(text, &m, &err) < 0) {
        require(err.message[0] != '\0');
        return;
    }
    history_manifest_encode(&m, &out);
    require(history_manifest_decode((struct slice){out.data, out.len}, &again, &err) == 0);
    check_same(&m, &again);
    history_manifest_mark(&again, history_rules_usual.ignore);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_buf_ struct buf whole = BUF_INIT(1 << 20);
    check_read((struct slice){(const char *)data, size});
    buf_add(&whole, data, size);
    history_manifest_seal(&whole, 0);
    if (!whole.failed)
        check_read((struct slice){whole.data, whole.len});
    return 0;
}
