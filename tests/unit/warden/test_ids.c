/* SPDX-License-Identifier: Apache-2.0 */

#include "warden/ids.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct place {
    char top[64], dir[80], here[80], there[80];
};

static int set_up(void **state)
{
    struct place *place = calloc(1, sizeof(*place));
    snprintf(place->top, sizeof(place->top), "/tmp/cella-ids-XXXXXX");
    if (mkdtemp(place->top) == NULL)
        return -1;
    snprintf(place->dir, sizeof(place->dir), "%s/registry", place->top);
    snprintf(place->here, sizeof(place->here), "%s/here", place->top);
    snprintf(place->there, sizeof(place->there), "%s/there", place->top);
    *state = place;
    return mkdir(place->here, 0700) + mkdir(place->there, 0700);
}

static int tear_down(void **state)
{
    struct place *place = *state;
    rmdir(place->there);
    rmdir(place->here);
    rmdir(place->dir);
    int r = rmdir(place->top);
    free(place);
    return r; /* -1 when a test left a link behind */
}

static void begin(struct ids *ids, const struct place *place, const char *data, int cursor)
{
    ids_init(ids, data, "abcdefgh");
    ids->dir = place->dir;
    ids->cursor = cursor;
}

static void parses_holders(void **state)
{
    size_t len;
    const char *id;
    assert_true(ids_parse("/var/lib/a:b:abc", &len, &id));
    assert_int_equal(len, strlen("/var/lib/a:b"));
    assert_string_equal(id, "abc");
    assert_false(ids_parse("relative:abc", &len, &id));
    assert_false(ids_parse("/no-colon", &len, &id));
    assert_false(ids_parse("/data:", &len, &id));
    assert_false(ids_parse("/data:UPPER", &len, &id));
}

static void ranges_do_not_meet(void **state)
{
    assert_true(ids_base(1) - ids_base(0) == ID_RANGE);
    assert_true(ids_base(ID_SLOTS - 1) + (uint64_t)ID_RANGE <= UINT64_C(0x80000000));
}

static void nobody_gets_a_slot_twice(void **state)
{
    struct ids here, there;
    struct error err;
    int a, b, c;
    begin(&here, *state, ((struct place *)*state)->here, 7);
    begin(&there, *state, ((struct place *)*state)->there, 7);
    assert_int_equal(ids_take(&here, "one", &a, &err), 0);
    assert_int_equal(ids_take(&there, "one", &b, &err), 0);
    assert_int_equal(a, 7);
    assert_int_equal(b, 8);
    ids_give(&there, "one", a); /* not its own: nothing happens */
    there.cursor = 7;
    assert_int_equal(ids_take(&there, "two", &c, &err), 0);
    assert_int_equal(c, 9);
    ids_give(&here, "one", a);
    here.cursor = 7;
    assert_int_equal(ids_take(&here, "three", &a, &err), 0);
    assert_int_equal(a, 7);
    ids_give(&here, "three", a);
    ids_give(&there, "one", b);
    ids_give(&there, "two", c);
}

static void wraps_around(void **state)
{
    struct ids ids;
    struct error err;
    int last, first;
    begin(&ids, *state, ((struct place *)*state)->here, ID_SLOTS - 1);
    assert_int_equal(ids_take(&ids, "a", &last, &err), 0);
    assert_int_equal(ids_take(&ids, "b", &first, &err), 0);
    assert_int_equal(last, ID_SLOTS - 1);
    assert_int_equal(first, 0);
    ids_give(&ids, "a", last);
    ids_give(&ids, "b", first);
}

static void a_vanished_folder_loses_its_slots(void **state)
{
    const struct place *place = *state;
    struct ids here, there;
    struct error err;
    int a, b;
    begin(&there, place, place->there, 3);
    assert_int_equal(ids_take(&there, "gone", &a, &err), 0);
    assert_int_equal(rmdir(place->there), 0);
    begin(&here, place, place->here, 3);
    assert_int_equal(ids_take(&here, "new", &b, &err), 0);
    assert_int_equal(b, 3);
    ids_give(&here, "new", b);
}

static int remember(int slot, const char *id, void *arg)
{
    snprintf(arg, 64, "%d:%s", slot, id);
    return 0;
}

static void lists_its_own_only(void **state)
{
    const struct place *place = *state;
    struct ids here, there;
    struct error err;
    int a, b;
    char seen[64] = "";
    begin(&here, place, place->here, 1);
    begin(&there, place, place->there, 1);
    assert_int_equal(ids_take(&here, "mine", &a, &err), 0);
    assert_int_equal(ids_take(&there, "other", &b, &err), 0);
    assert_int_equal(ids_each(&here, remember, seen, &err), 0);
    assert_string_equal(seen, "1:mine");
    ids_give(&here, "mine", a);
    ids_give(&there, "other", b);
    ids_tidy(&here);
    assert_int_equal(access(place->dir, F_OK), -1);
}

static bool take_give_tidy(struct ids *ids, int rounds)
{
    struct error err;
    int slot;
    for (int i = 0; i < rounds; i++) {
        if (ids_take(ids, "one", &slot, &err) < 0)
            return false;
        ids_give(ids, "one", slot);
        ids_tidy(ids);
    }
    return true;
}

/* Two servers, each of which removes the registry when it was the last to use it. */
static void others_tidy_up_meanwhile(void **state)
{
    enum { ROUNDS = 1000 };
    const struct place *place = *state;
    struct ids here, there;
    int status;
    begin(&here, place, place->here, 1);
    begin(&there, place, place->there, 1);
    /* So that its parent is a folder that goes, too. */
    char dir[sizeof(place->dir) + 8];
    snprintf(dir, sizeof(dir), "%s/ids", place->dir);
    here.dir = there.dir = dir;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(take_give_tidy(&there, ROUNDS) ? 0 : 1);
    bool good = take_give_tidy(&here, ROUNDS);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(good);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parses_holders),
        cmocka_unit_test(ranges_do_not_meet),
        cmocka_unit_test_setup_teardown(nobody_gets_a_slot_twice, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wraps_around, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_vanished_folder_loses_its_slots, set_up, tear_down),
        cmocka_unit_test_setup_teardown(lists_its_own_only, set_up, tear_down),
        cmocka_unit_test_setup_teardown(others_tidy_up_meanwhile, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
