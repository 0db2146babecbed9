/* check_fza.c - Adam moments on disk: bytes as the layout says, staged reading, hostile files. */
#include "formats/fza.h"

#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "scratch.h"

enum { N = 6 };

typedef struct moments {
  float m[2][N], v[2][N];
  fl_fza_slot slot[2];
} moments;

static void make(moments *x, float start) {
  for (int s = 0; s < 2; s++)
    for (int i = 0; i < N; i++) {
      x->m[s][i] = start - (float)i;
      x->v[s][i] = start + (float)(i + s);
    }
  x->slot[0] = (fl_fza_slot){ "layers.0.k", 2, 3, 41, x->m[0], x->v[0] };
  x->slot[1] = (fl_fza_slot){ "layers.0.v", 3, 2, 42, x->m[1], x->v[1] };
}

static void unchanged(const moments *x, float start) {
  moments want;
  make(&want, start);
  ck_assert_mem_eq(x->m, want.m, sizeof want.m);
  ck_assert_mem_eq(x->v, want.v, sizeof want.v);
  ck_assert(x->slot[0].step == 41 && x->slot[1].step == 42);
}

static void slot_bytes(fl_buf *b, const fl_fza_slot *s) {
  const uint16_t len = (uint16_t)strlen(s->name);
  const uint64_t sizes[3] = { s->rows, s->cols, s->step };
  fl_buf_append(b, &len, 2);
  fl_buf_append(b, s->name, len);
  fl_buf_append(b, sizes, 24);
  fl_buf_append(b, s->m, s->rows * s->cols * 4);
  fl_buf_append(b, s->v, s->rows * s->cols * 4);
}

/* The file by hand, from the description of the layout. */
static void file_bytes(fl_buf *b, const moments *x, uint32_t count) {
  fl_buf_append(b, "FZA3", 4);
  fl_buf_append(b, &count, 4);
  slot_bytes(b, &x->slot[0]);
  slot_bytes(b, &x->slot[1]);
}

START_TEST(written_bytes_follow_the_layout) {
  moments x;
  fl_buf want = { 0 }, got = { 0 };
  make(&x, 10);
  ck_assert_int_eq(fl_fza_write(scratch("f.fza"), x.slot, 2, NULL), FL_OK);
  ck_assert_int_eq(fl_fs_read(&got, scratch("f.fza"), 10000, NULL), FL_OK);
  file_bytes(&want, &x, 2);
  ck_assert_uint_eq(got.len, want.len);
  ck_assert_mem_eq(got.data, want.data, want.len);
  fl_buf_release(&want);
  fl_buf_release(&got);
}
END_TEST

START_TEST(reading_is_by_name) {
  moments x, y;
  make(&x, 10);
  make(&y, 0);
  x.slot[1].step = UINT64_MAX;
  ck_assert_int_eq(fl_fza_write(scratch("f.fza"), x.slot, 2, NULL), FL_OK);
  fl_fza_slot swapped[2] = { y.slot[1], y.slot[0] };
  ck_assert_int_eq(fl_fza_read(scratch("f.fza"), swapped, 2, NULL), FL_OK);
  ck_assert_mem_eq(y.m, x.m, sizeof x.m);
  ck_assert_mem_eq(y.v, x.v, sizeof x.v);
  ck_assert(swapped[0].step == UINT64_MAX && swapped[1].step == 41);
}
END_TEST

START_TEST(no_slots) {
  ck_assert_int_eq(fl_fza_write(scratch("f.fza"), NULL, 0, NULL), FL_OK);
  ck_assert_int_eq(fl_fza_read(scratch("f.fza"), NULL, 0, NULL), FL_OK);
}
END_TEST

typedef enum fault {
  NO_FAULT,
  BAD_MAGIC,
  OTHER_VERSION,
  COUNT_TOO_SMALL,
  COUNT_TOO_LARGE,
  COUNT_HUGE,
  UNKNOWN_NAME,
  NAME_TWICE,
  NAME_PAST_END,
  NAME_EMPTY,
  OTHER_ROWS,
  ROWS_AND_COLS_SWAPPED,
  ROWS_OVERFLOW,
  M_NAN,
  M_INFINITE,
  V_NAN,
  V_INFINITE,
  V_NEGATIVE,
  LAST_V_NAN,
  TRAILING_BYTE,
  N_FAULTS
} fault;

static void make_faulty(fl_buf *b, fault f) {
  moments x;
  make(&x, 10);
  switch (f) {
  case UNKNOWN_NAME: x.slot[1].name = "layers.1.v"; break;
  case NAME_TWICE:
    x.slot[1].name = "layers.0.k";
    x.slot[1].rows = 2;
    x.slot[1].cols = 3;
    break;
  case NAME_EMPTY: x.slot[0].name = ""; break;
  case OTHER_ROWS: x.slot[0].rows = 1; break;
  case ROWS_AND_COLS_SWAPPED:
    x.slot[0].rows = 3;
    x.slot[0].cols = 2;
    break;
  case M_NAN: x.m[0][5] = NAN; break;
  case M_INFINITE: x.m[1][0] = -INFINITY; break;
  case V_NAN: x.v[0][0] = NAN; break;
  case V_INFINITE: x.v[0][3] = INFINITY; break;
  case V_NEGATIVE: x.v[1][2] = -1e-30f; break;
  case LAST_V_NAN: x.v[1][5] = NAN; break;
  default: break;
  }
  file_bytes(b, &x,
             f == COUNT_TOO_SMALL   ? 1
             : f == COUNT_TOO_LARGE ? 3
             : f == COUNT_HUGE      ? UINT32_MAX
                                    : 2);
  if (f == BAD_MAGIC) b->data[0] = 'G';
  if (f == OTHER_VERSION) b->data[3] = '4';
  if (f == NAME_PAST_END) memset(b->data + 8, 0xFF, 2);
  if (f == ROWS_OVERFLOW) memset(b->data + 8 + 2 + 10, 0xFF, 8);
  if (f == TRAILING_BYTE) fl_buf_putc(b, 0);
}

START_TEST(ways_to_be_wrong) {
  moments y;
  fl_buf b = { 0 };
  fl_err err = { 0 };
  make(&y, 0);
  make_faulty(&b, (fault)_i);
  scratch_put(scratch("f.fza"), b.data, b.len);
  ck_assert_msg(fl_fza_read(scratch("f.fza"), y.slot, 2, &err) == FL_EINPUT, "fault %d", _i);
  ck_assert_ptr_nonnull(strstr(err.text, "f.fza: "));
  unchanged(&y, 0);
  fl_buf_release(&b);
}
END_TEST

START_TEST(every_cut) {
  moments x, y;
  fl_buf b = { 0 };
  make(&x, 10);
  make(&y, 0);
  file_bytes(&b, &x, 2);
  for (size_t n = 0; n < b.len; n++) {
    scratch_put(scratch("f.fza"), b.data, n);
    ck_assert_msg(fl_fza_read(scratch("f.fza"), y.slot, 2, NULL) == FL_EINPUT, "%zu bytes", n);
  }
  unchanged(&y, 0);
  fl_buf_release(&b);
}
END_TEST

START_TEST(missing_memory_and_missing_file) {
  moments x;
  make(&x, 10);
  ck_assert_int_eq(fl_fza_read(scratch("none"), x.slot, 2, NULL), FL_ENOENT);
  ck_assert_int_eq(fl_fza_write(scratch("none/f"), x.slot, 2, NULL), FL_ENOENT);
  ck_assert_int_eq(fl_fza_write("/dev/full", x.slot, 2, NULL), FL_EFAIL);
  ck_assert_int_eq(fl_fza_write(scratch("f.fza"), x.slot, 2, NULL), FL_OK);
  fl_mem_fault_after(1);
  ck_assert_int_eq(fl_fza_read(scratch("f.fza"), x.slot, 2, NULL), FL_ENOMEM);
  fl_mem_fault_after(1);
  ck_assert_int_eq(fl_fza_write(scratch("g.fza"), x.slot, 2, NULL), FL_ENOMEM);
  fl_mem_fault_after(0);
  unchanged(&x, 10);
}
END_TEST

START_TEST(a_slot_that_cannot_be_written_leaves_no_file) {
  moments x;
  static char name[70000];
  make(&x, 10);
  memset(name, 'n', sizeof name - 1);
  x.slot[1].name = name;
  ck_assert_int_eq(fl_fza_write(scratch("f.fza"), x.slot, 2, NULL), FL_EFAIL);
  make(&x, 10);
  x.slot[1].rows = SIZE_MAX;
  ck_assert_int_eq(fl_fza_write(scratch("f.fza"), x.slot, 2, NULL), FL_EFAIL);
  ck_assert_uint_eq(scratch_count(), 0);
}
END_TEST

Suite *suite_fza(void) {
  Suite *s = suite_create("fza");
  TCase *core = tcase_create("Core"), *errors = tcase_create("Errors");
  tcase_add_checked_fixture(core, scratch_begin, scratch_end);
  tcase_add_checked_fixture(errors, scratch_begin, scratch_end);
  tcase_add_test(core, written_bytes_follow_the_layout);
  tcase_add_test(core, reading_is_by_name);
  tcase_add_test(core, no_slots);
  tcase_add_loop_test(errors, ways_to_be_wrong, NO_FAULT + 1, N_FAULTS);
  tcase_add_test(errors, every_cut);
  tcase_add_test(errors, missing_memory_and_missing_file);
  tcase_add_test(errors, a_slot_that_cannot_be_written_leaves_no_file);
  suite_add_tcase(s, core);
  suite_add_tcase(s, errors);
  return s;
}
