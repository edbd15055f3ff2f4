/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which control group git runs in. Each workspace has one of HELPER_GROUPS; where there are more
 * workspaces than groups, some share one. The warden makes a group when its first git is due.
 */

#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "sandbox/history_state.h"

int history_helpers_new(struct histories *h, struct error *err)
{
    h->groups = calloc(HELPER_GROUPS, sizeof(*h->groups));
    return h->groups == NULL ? error_sys(err, "allocating") : 0;
}

void history_helpers_free(struct histories *h)
{
    for (size_t i = 0; h->groups != NULL && i < HELPER_GROUPS; i++)
        for (size_t k = 0; k < h->groups[i].git.group_count; k++)
            close(h->groups[i].files[k]);
    free(h->groups);
    h->groups = NULL;
}

/* Those that are there when the first one is needed; without them git runs where cellad does. */
static void ask_for_files(struct sandboxes *s, struct helper_group *group, unsigned number)
{
    struct provider *p = s->provider;
    struct error err = {0};
    size_t count = 0;
    if (p == NULL || p->ops->helper == NULL)
        return;
    while (count < HELPER_PARTS_MAX &&
           p->ops->helper(p, number, (unsigned)count, &group->files[count], &err) == 0)
        count++;
    group->git.groups = group->files;
    group->git.group_count = count;
    if (count == 0) {
        group->asked = false; /* the warden is being started, say */
        log_debug("history: git runs without limits of its own: %s", err.message);
    }
}

struct git_program *history_git(struct sandbox *sb)
{
    struct histories *h = sb->owner->histories;
    const struct tenant *tenant = sb->promise.tenant;
    unsigned number = tenant == NULL ? 0 : tenant->number % HELPER_GROUPS;
    struct helper_group *group = &h->groups[number];
    if (group->git.loop == NULL) {
        group->git = h->git;
        group->git.groups = NULL;
        group->git.group_count = 0;
    }
    if (!group->asked) {
        group->asked = true;
        ask_for_files(sb->owner, group, number);
    }
    return &group->git;
}
