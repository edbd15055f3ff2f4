/* SPDX-License-Identifier: Apache-2.0 */

/* The table of processes: who is found by which number or name, and what is forgotten when. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "agent/agent.h"
#include "agent/connection.h"
#include "agent/exec.h"
#include "agent/limits.h"
#include "agent/process.h"
#include "base/limits.h"

#define MADE_UP "proc-"

enum { RANDOM_LETTERS = 8 };

static bool is_over(const struct process *process)
{
    return process->ended && process->tree_gone && !streams_open(process);
}

/* --- looking up --- */

static struct process *find_pid(struct agent *agent, uint64_t pid)
{
    for (struct process *p = agent->processes; p != NULL; p = p->next)
        if (p->id == pid && !p->failed)
            return p;
    return NULL;
}

/* The one that runs; else the newest. */
static struct process *find_name(struct agent *agent, const char *name)
{
    struct process *found = NULL;
    for (struct process *p = agent->processes; p != NULL; p = p->next) {
        if (p->failed || strcmp(p->name, name) != 0)
            continue;
        if (!p->ended)
            return p;
        found = p;
    }
    return found;
}

struct process *process_find(struct agent *agent, uint64_t pid, const char *name, struct error *err)
{
    struct process *process = NULL;
    if (pid != 0)
        process = find_pid(agent, pid);
    else if (name != NULL)
        process = find_name(agent, name);
    if (process != NULL)
        return process;
    if (pid != 0 || name == NULL)
        error_set(err, ERROR_PROCESS_NOT_FOUND, "there is no process %llu",
                  (unsigned long long)pid);
    else
        error_set(err, ERROR_PROCESS_NOT_FOUND, "there is no process \"%s\"", name);
    return NULL;
}

struct process *process_find_execution(struct agent *agent, const char *execution)
{
    for (struct process *p = agent->processes; p != NULL; p = p->next)
        if (!p->failed && strcmp(p->execution, execution) == 0)
            return p;
    return NULL;
}

struct process *process_after(struct agent *agent, uint64_t sequence)
{
    for (struct process *p = agent->processes; p != NULL; p = p->next)
        if (p->sequence > sequence && !p->failed)
            return p;
    return NULL;
}

unsigned processes_count_live(const struct agent *agent)
{
    unsigned count = 0;
    for (const struct process *p = agent->processes; p != NULL; p = p->next)
        count += !is_over(p);
    return count;
}

/* --- names and numbers --- */

static bool name_is_taken(struct agent *agent, const char *name)
{
    const struct process *p = find_name(agent, name);
    return p != NULL && !p->ended;
}

/* splitmix64: names have to differ, not to be secrets, so the kernel is asked once for a seed. */
static uint64_t next_random(struct agent *agent)
{
    if (agent->name_seed == 0) {
        (void)!getrandom(&agent->name_seed, sizeof(agent->name_seed), GRND_NONBLOCK);
        agent->name_seed |= 1;
    }
    uint64_t z = agent->name_seed += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static void make_up(struct agent *agent, char name[sizeof(MADE_UP) + RANDOM_LETTERS])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    uint64_t random = next_random(agent);
    char *at = name + sizeof(MADE_UP) - 1;
    memcpy(name, MADE_UP, sizeof(MADE_UP) - 1);
    for (int i = 0; i < RANDOM_LETTERS; i++, random /= sizeof(letters) - 1)
        *at++ = letters[random % (sizeof(letters) - 1)];
    *at = '\0';
}

char *process_make_name(struct agent *agent, const char *wanted, struct error *err)
{
    char made[sizeof(MADE_UP) + RANDOM_LETTERS];
    if (wanted != NULL && name_is_taken(agent, wanted)) {
        error_set(err, ERROR_ALREADY_EXISTS, "a process named \"%s\" is running", wanted);
        return NULL;
    }
    if (wanted == NULL)
        do
            make_up(agent, made);
        while (name_is_taken(agent, made));
    char *name = strdup(wanted != NULL ? wanted : made);
    if (name == NULL)
        error_sys(err, "a new process");
    return name;
}

uint64_t process_make_id(struct agent *agent, pid_t pid)
{
    const struct process *other = find_pid(agent, (uint64_t)pid);
    uint64_t id = (uint64_t)pid;
    /* One that was started again keeps its first number, which the kernel may give out once more:
     * then the newcomer goes by one that the kernel never gives out. */
    while (other != NULL && !other->ended) {
        id += PROCESS_PID_MAX;
        other = find_pid(agent, id);
    }
    for (struct process *p = agent->processes; p != NULL; p = p->next)
        if (p->id == id && p->ended)
            p->failed = agent->processes_changed = true;
    return id;
}

/* --- forgetting --- */

void process_free(struct agent *agent, struct process *process)
{
    while (process->waiters != NULL) {
        struct waiter *waiter = process->waiters;
        process->waiters = waiter->next;
        free(waiter);
    }
    while (process->followers != NULL) {
        process->followers->connection->broken = true; /* the end that will not come otherwise */
        follower_free(agent, process->followers);
    }
    watch_stop(agent, &process->status);
    if (process->plan != NULL)
        launch_begun(agent, process->plan);
    input_close(agent, &process->input);
    for (int i = 0; i < 2; i++) {
        watch_stop(agent, &process->streams[i].watch);
        output_release(&process->streams[i].output);
    }
    runs_release(&process->runs);
    tree_release(agent, &process->tree);
    limit_group_free(agent, process->group);
    free(process->again);
    free(process->name);
    free(process->command);
    free(process->cwd);
    free(process->user);
    free(process);
}

static size_t process_bytes(const struct process *process)
{
    return sizeof(*process) + process->streams[0].output.cap + process->streams[1].output.cap +
           output_marks_bytes(&process->streams[0].output) +
           output_marks_bytes(&process->streams[1].output) + runs_bytes(&process->runs) +
           process->command_len;
}

void processes_drop(struct agent *agent)
{
    if (!agent->processes_changed)
        return;
    agent->processes_changed = false;
    size_t bytes = 0, count = 0;
    for (struct process *p = agent->processes; p != NULL; p = p->next)
        if (is_over(p)) {
            count++;
            bytes += process_bytes(p);
        }
    struct process **at = &agent->processes;
    while (*at != NULL) {
        struct process *p = *at;
        bool over = is_over(p);
        bool too_many = count > PROCESSES_KEPT_MAX || bytes > LOG_BYTES_KEPT_MAX;
        if (!(over && (p->failed || (too_many && p->followers == NULL)))) {
            at = &p->next;
            continue;
        }
        count--;
        bytes -= process_bytes(p);
        *at = p->next;
        process_free(agent, p);
    }
    agent->processes_tail = at;
}

void processes_release(struct agent *agent)
{
    while (agent->processes != NULL) {
        struct process *p = agent->processes;
        agent->processes = p->next;
        tree_signal(&p->tree, SIGKILL);
        process_free(agent, p);
    }
    agent->processes_tail = &agent->processes;
}

void processes_forget(struct agent *agent, struct connection *connection, uint32_t id)
{
    for (struct process *p = agent->processes; p != NULL; p = p->next) {
        for (struct waiter **at = &p->waiters; *at != NULL;) {
            struct waiter *waiter = *at;
            if (waiter->connection != connection || (id != 0 && waiter->id != id)) {
                at = &waiter->next;
                continue;
            }
            *at = waiter->next;
            free(waiter);
        }
        input_forget(&p->input, connection, id);
    }
    if (connection->follower != NULL && (id == 0 || connection->follower->id == id))
        follower_free(agent, connection->follower);
}
