/* docs.c - --docs and what belongs to it. */
#include "commands/docs.h"

#include "base/log.h"

const opt_spec docs_specs[] = { { .name = "docs",
                                  .letter = 'd',
                                  .type = OPT_LIST,
                                  .meta = "PATH",
                                  .offset = offsetof(docs_args, docs),
                                  .help = "a document or a folder of them; repeatable" },
                                { .name = "recursive",
                                  .letter = 'R',
                                  .type = OPT_ON,
                                  .offset = offsetof(docs_args, recursive),
                                  .help = "folders with all that is below them" },
                                { .name = "ignore",
                                  .type = OPT_LIST,
                                  .meta = "PATTERN",
                                  .offset = offsetof(docs_args, ignore),
                                  .help = "what folders do not give, a shell pattern; repeatable" },
                                { .name = "skip-unreadable",
                                  .type = OPT_ON,
                                  .offset = offsetof(docs_args, skip),
                                  .help = "go on without the files that cannot be read" },
                                { 0 } };

static void warn(void *ctx, const char *sentence) {
  (void)ctx;
  fl_warn("%s", sentence);
}

fl_source_options docs_options(const docs_args *a) {
  return (fl_source_options){ .recursive = a->recursive,
                              .ignore = a->ignore.v,
                              .n_ignore = a->ignore.n,
                              .skip = a->skip,
                              .unreadable = warn };
}

int docs_read(fl_source_list *out, const docs_args *a, fl_err *err) {
  const fl_source_options o = docs_options(a);
  return fl_source_read_with(out, a->docs.v, a->docs.n, &o, err);
}
