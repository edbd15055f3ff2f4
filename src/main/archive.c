/* SPDX-License-Identifier: Apache-2.0 */

/* Running tar. */

#include "main/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { NOT_THERE = 127 };

static _Noreturn void become_tar(const char *const *argv, int in, int out)
{
    char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", locale[] = "LC_ALL=C";
    char *envp[] = {path, locale, NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0 && dup2(in >= 0 ? in : null, STDIN_FILENO) >= 0 &&
        dup2(out >= 0 ? out : null, STDOUT_FILENO) >= 0)
        execvpe(argv[0], (char *const *)argv, envp);
    _exit(NOT_THERE);
}

int archive_run(const char *const *argv, int in, int out, const char *what, struct error *err)
{
    int status;
    pid_t pid = fork();
    if (pid < 0)
        return error_sys(err, "starting tar");
    if (pid == 0)
        become_tar(argv, in, out);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return error_sys(err, "waiting for tar");
    if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_THERE)
        return error_set(err, ERROR_UNAVAILABLE, "the program tar is not installed");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return error_set(err, ERROR_INVALID_ARGUMENT, "%s (tar has said why)", what);
    return 0;
}
