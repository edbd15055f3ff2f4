/* SPDX-License-Identifier: Apache-2.0 */

#include "warden/storage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "warden/files.h"

static void names_of_kinds(void **state)
{
    enum storage_kind kind;
    assert_true(storage_kind_parse("plain", &kind) && kind == STORAGE_PLAIN);
    assert_true(storage_kind_parse("auto", &kind) && kind == STORAGE_AUTO);
    assert_false(storage_kind_parse("zfs", &kind));
}

static int count(const char *name, void *arg)
{
    (*(int *)arg)++;
    return 0;
}

/* The plain backend needs no privilege: it stands for both in what they share. */
static void life_of_a_layer(void **state)
{
    char data[] = "/tmp/cella-storage-XXXXXX", path[64];
    struct storage storage;
    struct error err = {0};
    struct stat st;
    bool fresh;
    int layers = 0;
    assert_non_null(mkdtemp(data));
    assert_int_equal(storage_mount(&storage, data, STORAGE_PLAIN, 0, &err), 0);
    assert_int_equal(storage_open(&storage, &err), 0);
    assert_int_equal(storage_create(&storage, "one", 1 << 20, &fresh, &err), 0);
    assert_true(fresh);
    assert_int_equal(storage_create(&storage, "one", 1 << 20, &fresh, &err), 0);
    assert_false(fresh);

    snprintf(path, sizeof(path), "%s/volume", data);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700); /* setuid files of sandboxes are in there */
    snprintf(path, sizeof(path), "%s/volume/one/root/upper", data);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0755);

    assert_int_equal(storage_detach(&storage, "one", &err), 0);
    assert_false(storage_exists(&storage, "one"));
    storage_close(&storage);

    /* Killed here: the next one finishes the removal. */
    assert_int_equal(storage_mount(&storage, data, STORAGE_AUTO, 0, &err), 0);
    assert_ptr_equal(storage.backend, &storage_plain); /* plain stays plain */
    assert_int_equal(storage_open(&storage, &err), 0);
    assert_int_equal(storage_each(&storage, count, &layers, &err), 0);
    assert_int_equal(layers, 0);
    storage_close(&storage);
    assert_int_equal(tree_remove_at(AT_FDCWD, data, &err), 0);
}

static void plain_does_not_hide_a_volume(void **state)
{
    char data[] = "/tmp/cella-storage-XXXXXX", path[64];
    struct storage storage;
    struct error err = {0};
    assert_non_null(mkdtemp(data));
    snprintf(path, sizeof(path), "%s/volume.img", data);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(storage_mount(&storage, data, STORAGE_PLAIN, 0, &err), -1);
    assert_int_equal(err.code, ERROR_CONFLICT);
    assert_int_equal(tree_remove_at(AT_FDCWD, data, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_kinds),
        cmocka_unit_test(life_of_a_layer),
        cmocka_unit_test(plain_does_not_hide_a_volume),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
