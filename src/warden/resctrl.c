/* SPDX-License-Identifier: Apache-2.0 */

/* The few files of resctrl that are needed. */

#include "warden/resctrl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "warden/files.h"
#include "warden/plan.h"

enum { PATH_SIZE = 80, SCHEMATA_MAX = 4096, NUMBER_TEXT = 24 };

unsigned resctrl_parse_domains(const char *schemata, unsigned domains[RESCTRL_DOMAINS_MAX])
{
    unsigned count = 0;
    const char *at = schemata;
    for (;;) {
        at += strspn(at, " \t"); /* names are aligned to the right */
        if (strncmp(at, "MB:", 3) == 0)
            break;
        at = strchr(at, '\n');
        if (at == NULL)
            return 0;
        at++;
    }
    for (at += 3; count < RESCTRL_DOMAINS_MAX;) {
        char *end;
        unsigned long domain = strtoul(at, &end, 10);
        if (end == at || *end != '=')
            break;
        domains[count++] = (unsigned)domain;
        at = end + strcspn(end, ";\n");
        if (*at != ';')
            break;
        at++;
    }
    return count;
}

static bool read_number(int root, const char *path, unsigned *ret_value)
{
    char text[NUMBER_TEXT];
    if (file_read_at(root, path, text, sizeof(text), NULL) < 0)
        return false;
    *ret_value = (unsigned)strtoul(text, NULL, 10);
    return *ret_value > 0 && *ret_value <= 100;
}

static void refuse(struct resctrl *resctrl, const char *why)
{
    cleanup_fd(&resctrl->fd);
    resctrl->fd = -1;
    snprintf(resctrl->why, sizeof(resctrl->why), "not enforced: %s", why);
}

void resctrl_open(struct resctrl *resctrl, const char *root, const char *instance)
{
    char text[SCHEMATA_MAX];
    *resctrl = (struct resctrl){.fd = -1};
    snprintf(resctrl->prefix, sizeof(resctrl->prefix), "cella-%s-", instance);
    if (access(root, F_OK) < 0) {
        refuse(resctrl, "the kernel has no resctrl, or the processor no resource control");
        return;
    }
    resctrl->fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (resctrl->fd >= 0 && faccessat(resctrl->fd, "schemata", F_OK, 0) < 0) {
        cleanup_fd(&resctrl->fd); /* the mount point, with nothing on it */
        resctrl->fd = -1;
        if (mount("resctrl", root, "resctrl", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
            resctrl->fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (resctrl->fd < 0) {
        refuse(resctrl, "resctrl cannot be mounted");
        return;
    }
    if (!read_number(resctrl->fd, "info/MB/min_bandwidth", &resctrl->min) ||
        !read_number(resctrl->fd, "info/MB/bandwidth_gran", &resctrl->step) ||
        file_read_at(resctrl->fd, "schemata", text, sizeof(text), NULL) < 0) {
        refuse(resctrl, "the processor cannot limit memory bandwidth");
        return;
    }
    resctrl->domain_count = resctrl_parse_domains(text, resctrl->domains);
    if (resctrl->domain_count == 0) {
        refuse(resctrl, "the processor cannot limit memory bandwidth");
        return;
    }
    snprintf(resctrl->why, sizeof(resctrl->why), "resctrl, in steps of %u per cent from %u on",
             resctrl->step, resctrl->min);
}

void resctrl_close(struct resctrl *resctrl)
{
    cleanup_fd(&resctrl->fd);
    resctrl->fd = -1;
}

static void group_path(const struct resctrl *resctrl, const char *id, const char *file,
                       char path[PATH_SIZE])
{
    snprintf(path, PATH_SIZE, "%s%s%s%s", resctrl->prefix, id, file == NULL ? "" : "/",
             file == NULL ? "" : file);
}

/* Up to the next step, and never below what the hardware takes. */
static unsigned round_share(const struct resctrl *resctrl, uint64_t percent)
{
    uint64_t share = percent == 0 || percent > 100 ? 100 : percent;
    share = (share + resctrl->step - 1) / resctrl->step * resctrl->step;
    if (share < resctrl->min)
        share = resctrl->min;
    return share > 100 ? 100 : (unsigned)share;
}

int resctrl_limit(const struct resctrl *resctrl, const char *id, uint64_t percent, pid_t pid,
                  struct error *err)
{
    char path[PATH_SIZE], text[NUMBER_TEXT];
    if (resctrl->fd < 0)
        return 0;
    group_path(resctrl, id, NULL, path);
    bool there = faccessat(resctrl->fd, path, F_OK, 0) == 0;
    if (!there && percent == 0)
        return 0;
    if (!there && mkdirat(resctrl->fd, path, 0755) < 0)
        return error_sys(err, "making the resctrl group %s", path);
    _cleanup_buf_ struct buf schemata = BUF_INIT(SCHEMATA_MAX);
    buf_adds(&schemata, "MB:");
    for (unsigned i = 0; i < resctrl->domain_count; i++)
        buf_addf(&schemata, "%s%u=%u", i > 0 ? ";" : "", resctrl->domains[i],
                 round_share(resctrl, percent));
    buf_addc(&schemata, '\n');
    group_path(resctrl, id, "schemata", path);
    if (file_write_at(resctrl->fd, path, schemata.data, err) < 0)
        return error_prefix(err, "limiting memory bandwidth");
    if (pid == 0)
        return 0;
    group_path(resctrl, id, "tasks", path);
    snprintf(text, sizeof(text), "%d", (int)pid);
    return file_write_at(resctrl->fd, path, text, err);
}

void resctrl_remove(const struct resctrl *resctrl, const char *id)
{
    char path[PATH_SIZE];
    if (resctrl->fd < 0)
        return;
    group_path(resctrl, id, NULL, path);
    unlinkat(resctrl->fd, path, AT_REMOVEDIR);
}
