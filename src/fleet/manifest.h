/* manifest.h - fleet.json: what the fleet is, in one file whose rename is the only commit point.
 *
 * The file keeps the members of `fucina.cartridge_fleet` version 1 (format, version, p,
 * frozen_prefix, embed_chunk, embed_dim, rounds, docs[name, cart_file, opt_file, tokens, steps]),
 * so that other programs can follow it; ours stand in an object "flotilla" at the top and in one in
 * each document. Members that we do not know survive a rewrite. Nothing in it tells the time or how
 * often a run was interrupted: equal training gives equal bytes.
 *
 * Generations. The generation of the fleet is rounds + edits, where an edit is a change to the set
 * of documents or a rebuilt index. A file of a document is named after the generation in which its
 * content last changed, whenever it was saved: an unchanged document keeps its file, and a run that
 * was stopped and resumed names its files as an uninterrupted one does.
 */
#ifndef FL_FLEET_MANIFEST_H
#define FL_FLEET_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "fleet/coverage.h"
#include "fleet/fleet.h"

#define FL_MANIFEST_FILE "fleet.json"
#define FL_MANIFEST_MAX_DOCS ((size_t)1 << 20)

typedef struct fl_doc_entry {
  uint32_t id;             /* stable, never used again after a removal */
  char *name, *hash;       /* hash NULL: not known (a fleet by another program) */
  char *cart_file;         /* plain file names in the fleet's folder */
  char *opt_file;          /* moments; the file may be missing */
  char *study_file;        /* kept conversations; NULL: none */
  uint64_t kept;           /* conversations in it; 0: not known */
  uint64_t tokens, rows;   /* rows 0: not known yet */
  uint64_t steps;          /* optimizer steps since birth */
  uint64_t targeted, made; /* rounds as the target; conversations planned so far */
  bool born, resident, marked;
  fl_coverage coverage;
  fl_json *extra, *extra_ours; /* members that we do not know, beside ours and in ours; or NULL */
} fl_doc_entry;

typedef struct fl_member { /* of a merged document */
  char *name, *hash;
} fl_member;

typedef struct fl_manifest {
  uint64_t p, frozen, embed_chunk, embed_dim, rounds, edits;
  uint32_t next_id;
  bool foreign;                                   /* by another program: no "flotilla" object */
  char *model_name, *model_hash, *tokenizer_hash; /* NULL when foreign */
  char *template_name;   /* of the chat, as the last training had it; NULL: not known */
  char *model_path;      /* where the last training had the model; NULL: not known */
  char *index_file;      /* NULL: none */
  char *lexical_file;    /* the index of words; may be older than the documents; NULL: none */
  fl_train_options opts; /* the flags of the last run; `rounds` is not kept */
  fl_member *member;     /* documents merged into the only one; n_members 0: not merged */
  size_t n_members;
  fl_doc_entry *doc;
  size_t n;
  fl_json *root; /* as read or last printed, without the documents */
  fl_buf saved;  /* names of the files that the manifest on disk names, a NUL each */
} fl_manifest;

void fl_manifest_release(fl_manifest *m);
static inline uint64_t fl_manifest_generation(const fl_manifest *m) { return m->rounds + m->edits; }

/* path: for messages. FL_EINPUT with a sentence on anything missing, mistyped, out of range, on
 * duplicate names or files, and on file names that are not plain. */
int fl_manifest_parse(fl_manifest *out, const char *text, size_t len, const char *path,
                      fl_err *err);
/* From dir/fleet.json; FL_ENOENT when there is none. */
int fl_manifest_load(fl_manifest *out, const char *dir, fl_err *err);
/* Appends the file's text; m->root becomes what was printed. FL_ENOMEM leaves m->root as it was.
 * Documents go one by one: with thousands of them a tree would be the largest thing in memory. */
int fl_manifest_print(fl_manifest *m, fl_buf *out);
/* Sets m->saved from the documents as they are; on lack of memory it is incomplete (oom). */
void fl_manifest_note_saved(fl_manifest *m);

/* A new document, not born yet, with the file names of the current generation. */
int fl_manifest_add(fl_manifest *m, const char *name, const char *hash, uint64_t tokens,
                    fl_err *err);
void fl_manifest_remove(fl_manifest *m, size_t i);
/* Position of an exact name; false if there is none. */
bool fl_manifest_find(const fl_manifest *m, const char *name, size_t *out);

/* Names files after the generation `gen`. */
int fl_doc_entry_name_files(fl_doc_entry *d, uint64_t gen);
char *fl_study_file_name(uint32_t id, uint64_t gen);
char *fl_index_file_name(uint64_t gen);
char *fl_lexical_file_name(uint64_t gen);
/* True for names that the four functions above make. */
bool fl_is_generation_file(const char *name);
/* *dst = copy of s (NULL: NULL); the old string is freed. False on lack of memory, unchanged. */
bool fl_set_string(char **dst, const char *s);

#endif
