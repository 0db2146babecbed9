/* words.c - see words.h. */
#include "tui/words.h"

#include <stddef.h>

const char *const tui_event_names[] = { "run",     "doc",      "study",    "round",
                                        "rotate",  "heldout",  "coverage", "save",
                                        "index",   "retrieve", "answer",   "request",
                                        "control", "error",    "end",      NULL };
const char *const tui_study_kinds[] = { "",         "structuring", "summarisation", "question",
                                        "use-case", "creative",    "mechanism",     "verbatim",
                                        "quote",    "cloze",       "sentence",      NULL };
const char *const tui_rejections[] = { "",        "empty", "long",   "repetitive", "cut", "other",
                                       "foreign", "echo",  "unsure", "same",       NULL };
const char *const tui_save_reasons[] = { "",        "every", "rotate", "end", "signal",
                                         "request", "birth", "index",  NULL };
const char *const tui_answer_arms[] = { "", "cartridge", "bare", "context", "text", NULL };
const char *const tui_end_states[] = {
  "", "done", [TUI_END_SIGNAL] = "signal", [TUI_END_ERROR] = "error", NULL
};
const char *const tui_doc_states[] = { "", "new", "kept", "changed", "removed", NULL };

const char *const tui_control_cmds[] = {
  "",     [TUI_CMD_PAUSE] = "pause", [TUI_CMD_RESUME] = "resume", "step", "save",
  "stop", [TUI_CMD_SET] = "set",     [TUI_CMD_MARK] = "mark",     NULL
};
const char *const tui_control_keys[] = {
  "", [TUI_KEY_LR] = "lr", [TUI_KEY_BUDGET] = "budget", [TUI_KEY_ROUNDS] = "rounds", NULL
};
