/* words.h - the words that the event log uses, which records hold as numbers. */
#ifndef TUI_WORDS_H
#define TUI_WORDS_H

/* Places in the tables below that code asks for. */
enum { TUI_END_SIGNAL = 2, TUI_END_ERROR = 3 };
enum { TUI_CMD_PAUSE = 1, TUI_CMD_RESUME = 2, TUI_CMD_SET = 6, TUI_CMD_MARK = 7 };
enum { TUI_KEY_LR = 1, TUI_KEY_BUDGET = 2, TUI_KEY_ROUNDS = 3 };

/* NULL-terminated; entry 0 is "" for an unknown word. */
extern const char *const tui_study_kinds[];
extern const char *const tui_rejections[];
extern const char *const tui_save_reasons[];
extern const char *const tui_answer_arms[];
extern const char *const tui_end_states[];
extern const char *const tui_doc_states[];
extern const char *const tui_event_names[];
extern const char *const tui_control_cmds[];
extern const char *const tui_control_keys[];

#endif
