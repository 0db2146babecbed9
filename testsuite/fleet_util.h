/* fleet_util.h - what the tests of fleets share: a folder of their own, the embedded model, small
 * documents, flags that make a round take a fraction of a second. */
#ifndef FL_TESTSUITE_FLEET_UTIL_H
#define FL_TESTSUITE_FLEET_UTIL_H

#include <stdbool.h>

#include "fleet/fleet.h"
#include "tree_util.h"

extern char fleet_dir[64]; /* the fleet's folder, not made yet */
extern char docs_dir[64];  /* an existing folder for documents */
extern fl_model *fleet_model;
extern fl_team *fleet_team;

void fleet_setup(void); /* the folders */
void fleet_teardown(void);
void fleet_setup_model(void); /* the folders and the model */
void fleet_teardown_model(void);
void fleet_open_model(void); /* the model alone; its threads do not survive a fork */
void fleet_close_model(void);

/* A training that many cases compare with is made once: straight_begin and straight_end belong in
 * an unchecked fixture, whose folders and documents every case then finds; straight_setup and
 * straight_teardown in a checked one. */
void straight_begin(size_t rounds, fl_train_options o); /* of put_docs, `rounds` without a stop */
void straight_end(void);
void straight_setup(void);
void straight_teardown(void);
const char *straight_fleet(void); /* the folder of that training */

void copy_tree(const char *from, const char *to);
const char *doc_path(const char *name); /* in docs_dir; a few calls may be held at once */
void put_doc(const char *name, const char *text);
void put_docs(void); /* a.md, b.md, c.md: from the fixture, some 100 tokens each */

/* Reads docs_dir as the documents of a fleet. */
fl_source_list read_docs(void);
fl_train_options small_options(void);

/* Opens with the documents of docs_dir (kept until the next call), asserts that it works. */
fl_fleet *must_open(const fl_train_options *o, const fl_open_options *how);
int try_open(fl_fleet **out, const fl_train_options *o, const fl_open_options *how, fl_err *err);
/* Opens (new or resumed), trains `rounds`, closes. */
void train_rounds(size_t rounds, fl_train_options o);
fl_fleet *open_reader(void);
uint64_t committed_rounds(void); /* of fleet_dir; 0 without a fleet */
int dial_trainer(void);          /* a descriptor of the control socket of fleet_dir */

/* Asserts that two fleet folders hold the same files with the same bytes, events, lock and sockets
 * aside. */
void assert_same_fleet(const char *a, const char *b);
bool in_fleet(const char *name);

#endif
