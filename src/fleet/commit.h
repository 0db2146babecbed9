/* commit.h - the commit protocol of a fleet folder.
 *
 *   1. Every changed file is written under a name that the manifest on disk does not use
 *      (fl_commit_path hands out the path), whole and fsynced, by its own writer.
 *   2. fl_commit_finish: the folder is fsynced, fleet.json is replaced (temporary file, fsync,
 *      rename, fsync of the folder). The rename is the commit.
 *   3. Then what the old manifest named and the new one does not is deleted.
 *
 * A crash before the rename leaves the old generation whole and files that nobody names; a crash
 * after it leaves the new one and the same. fl_commit_sweep(), called by every writer that opens
 * the folder, removes those. Only generation files (manifest.h) and our temporary files are ever
 * removed by the sweep, never a file that somebody else put there.
 *
 * After a commit `index.safetensors` is made a hard link to the index, for programs that expect the
 * index under that name; where the file system has no links it is left out.
 */
#ifndef FL_FLEET_COMMIT_H
#define FL_FLEET_COMMIT_H

#include <stdbool.h>

#include "base/err.h"
#include "fleet/manifest.h"

typedef struct fl_commit {
  const char *dir; /* borrowed */
  char **written;  /* names of this commit's files */
  size_t n, cap;
  uint64_t bytes; /* of these files, after fl_commit_finish */
  bool in_place;  /* fl_commit_finish failed, and yet the new manifest is the current one */
  /* Called before every durable step with its number, for tests that stop there; NULL. */
  void (*step)(void *ctx, int number);
  void *ctx;
} fl_commit;

/* *path (fl_free) = where the file `name` is to be written; a leftover of that name is removed. The
 * name is noted so that fl_commit_abandon can remove the file. */
int fl_commit_path(char **path, fl_commit *c, const char *name, fl_err *err);
/* Makes the manifest the current one. On failure the old generation is whole, the files written for
 * this commit are gone and m is unchanged on disk; where the new manifest is in place and only its
 * folder could not be synced, the files of both generations stay and c->in_place is set. Either way
 * `c` is empty again. */
int fl_commit_finish(fl_commit *c, fl_manifest *m, fl_err *err);
/* Removes the files written so far and empties `c`. */
void fl_commit_abandon(fl_commit *c);

/* Removes generation files and temporary files that m does not name. */
void fl_commit_sweep(const char *dir, const fl_manifest *m);

#endif
