/* check_tokenizer.c - ids against references, the way back, and vocabularies made to fail.
 *
 * References: fixtures/tokenizers (see its README): Hugging Face tokenizers and sentencepiece on
 * 190 strings. The merging engine is compared with a plain quadratic twin kept here, SentencePiece
 * encoding with itself when text is not cut first. */
#include <math.h>
#include <string.h>

#include "base/fs.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/rng.h"
#include "text/bpe.h"
#include "text/pretokenise.h"
#include "text/spm.h"
#include "text_util.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const struct {
  const char *file, *references;
} small[] = {
  { "tiny/tiny-qwen3.gguf", "tiny-bpe-qwen2" },
  { "tiny/tiny-gemma3.gguf", "tiny-spm-gemma3" },
  { "tiny/tiny-gemma4-dense.gguf", "tiny-gemma4" },
};

/* ---- Golden ------------------------------------------------------------------------------- */

START_TEST(references_are_met) {
  opened o = open_fixture(small[_i].file);
  check_references(o.tok, small[_i].references);
  close_opened(&o);
}
END_TEST

/* Pieces parted by '|', made with the `regex` module of Python from the expressions that
 * pretokenise.c states. */
static const struct {
  fl_pre pre;
  const char *text, *pieces;
} cuts[] = {
  { FL_PRE_GPT2, "I'm  12 34x, we'LL!\n\n y", "I|'m| | 12| 34|x|,| we|'|LL|!|\n\n| y" },
  { FL_PRE_GPT2, "a \t b\r\n", "a| \t| b|\r\n" },
  { FL_PRE_SMOLLM, "I'm  12 34x, we'LL!\n\n y", "I|'m|  |1|2| |3|4|x|,| we|'|LL|!|\n\n| y" },
  { FL_PRE_QWEN2, "I'm  12 34x, we'LL!\n\n y", "I|'m| | |1|2| |3|4|x|,| we|'LL|!\n\n| y" },
  { FL_PRE_QWEN2, " \n \n  x\t(y)", " \n \n| | x|\t|(y|)" },
  { FL_PRE_QWEN2, "don\xE2\x80\x99t 'Swap 'x", "don|\xE2\x80\x99t| '|Swap| '|x" },
  { FL_PRE_LLAMA3, "I'm  12345 34x", "I|'m| | |123|45| |34|x" },
  { FL_PRE_LLAMA3,
    "\xC2\xA0"
    "5\xC2\xBD\xE2\x85\xA3\xD9\xA4 z",
    "\xC2\xA0|5\xC2\xBD\xE2\x85\xA3|\xD9\xA4| z" },
};

START_TEST(pretokenisers_cut_as_published) {
  const char *text = cuts[_i].text;
  fl_buf got = { 0 };
  for (size_t at = 0, len = strlen(text), n; at < len; at += n) {
    n = fl_pretokenise(cuts[_i].pre, text + at, len - at);
    ck_assert_uint_gt(n, 0);
    if (at > 0) fl_buf_putc(&got, '|');
    fl_buf_append(&got, text + at, n);
  }
  ck_assert_str_eq(got.data, cuts[_i].pieces);
  fl_buf_release(&got);
}
END_TEST

START_TEST(llama3_takes_whole_pieces_first) {
  /* By the merges "abc" is a+bc, never ab+c; as a piece of text it is the token all the same. */
  static const char *const merges[] = { "b c", "a b", "ab c" };
  static const char *const marks[] = { "<|end|>" };
  gguf_maker m = { 0 }, again = { 0 };
  make_byte_bpe(&m, "llama-bpe", merges, 3, marks, 1);
  make_byte_bpe(&again, "gpt-2", merges, 3, marks, 1);
  opened llama = open_made(&m), gpt2 = open_made(&again);
  fl_ids a = ids_of(llama.tok, "abc", 0), b = ids_of(gpt2.tok, "abc", 0);
  ck_assert_str_eq(show_ids(&a), "258");
  ck_assert_str_eq(show_ids(&b), "97 256");
  fl_ids_release(&a);
  fl_ids_release(&b);
  close_opened(&llama);
  close_opened(&gpt2);
}
END_TEST

/* ---- Core --------------------------------------------------------------------------------- */

/* All bytes in order, then the strings of the references one after another. */
static fl_buf long_text(void) {
  fl_buf text = { 0 };
  fl_json *strings = load_json("tokenizers/strings.json");
  for (unsigned i = 0; i < 256; i++) fl_buf_putc(&text, (char)i);
  for (const fl_json *s = fl_json_first(strings); s; s = fl_json_next(s)) {
    fl_buf_puts(&text, fl_json_as_str(s));
    fl_buf_putc(&text, 'x');
  }
  fl_json_free(strings);
  return text;
}

/* U+2581 and a blank are one thing to SentencePiece. */
static void blanks_as_written_back(fl_buf *text) {
  fl_buf out = { 0 };
  for (size_t i = 0; i < text->len; i++) {
    bool blank = text->len - i >= 3 && memcmp(text->data + i, "\xE2\x96\x81", 3) == 0;
    fl_buf_putc(&out, blank ? ' ' : text->data[i]);
    if (blank) i += 2;
  }
  fl_buf_release(text);
  *text = out;
}

START_TEST(any_bytes_come_back) {
  static const unsigned flags[] = { 0, FL_TOK_SPECIAL };
  opened o = open_fixture(small[_i].file);
  fl_buf text = long_text();
  for (size_t k = 0; k < COUNT(flags); k++) {
    fl_ids v = { 0 };
    fl_buf back = { 0 };
    ck_assert_int_eq(fl_tokenize(o.tok, &v, text.data, text.len, flags[k], NULL), FL_OK);
    fl_detokenize(o.tok, &back, v.data, v.len, true);
    if (_i > 0) blanks_as_written_back(&text);
    ck_assert_uint_eq(back.len, text.len);
    ck_assert_mem_eq(back.data, text.data, text.len);
    fl_buf_release(&back);
    fl_ids_release(&v);
  }
  fl_buf_release(&text);
  close_opened(&o);
}
END_TEST

START_TEST(markers_in_text_stay_text) {
  opened o = open_fixture(small[_i].file);
  fl_buf text = long_text();
  fl_buf_puts(&text, "<|im_end|><|endoftext|><start_of_turn><end_of_turn><|turn><turn|><bos><eos>");
  fl_ids v = { 0 };
  ck_assert_int_eq(fl_tokenize(o.tok, &v, text.data, text.len, 0, NULL), FL_OK);
  for (size_t i = 0; i < v.len; i++) ck_assert(!fl_tokenizer_is_control(o.tok, v.data[i]));
  fl_ids_reset(&v);
  ck_assert_int_eq(fl_tokenize(o.tok, &v, text.data, text.len, FL_TOK_SPECIAL, NULL), FL_OK);
  size_t control = 0;
  for (size_t i = 0; i < v.len; i++) control += fl_tokenizer_is_control(o.tok, v.data[i]);
  ck_assert_uint_gt(control, 2);
  fl_ids_release(&v);
  fl_buf_release(&text);
  close_opened(&o);
}
END_TEST

START_TEST(control_tokens_show_only_when_asked) {
  opened o = open_fixture("embedded/model.gguf");
  fl_ids v = ids_of(o.tok, "<|im_start|>user\nHi<|im_end|>", FL_TOK_SPECIAL);
  fl_buf plain = { 0 }, special = { 0 };
  fl_detokenize(o.tok, &plain, v.data, v.len, false);
  fl_detokenize(o.tok, &special, v.data, v.len, true);
  ck_assert_str_eq(plain.data, "user\nHi");
  ck_assert_str_eq(special.data, "<|im_start|>user\nHi<|im_end|>");
  fl_detokenize_one(o.tok, &plain, -1, true);
  fl_detokenize_one(o.tok, &plain, 1 << 20, true);
  ck_assert_str_eq(plain.data, "user\nHi");
  fl_ids_release(&v);
  fl_buf_release(&plain);
  fl_buf_release(&special);
  close_opened(&o);
}
END_TEST

/* The plain twin of the merging engine: look at all pairs, take the best, begin again. */
static fl_ids merge_ref(const fl_bpe *b, const char *s, size_t len) {
  fl_ids v = { 0 };
  for (size_t i = 0; i < len; i++) fl_ids_push(&v, b->byte_id[(unsigned char)s[i]]);
  for (;;) {
    size_t best = SIZE_MAX;
    uint32_t best_rank = UINT32_MAX, rank;
    int32_t best_id = -1, id;
    for (size_t i = 0; i + 1 < v.len; i++)
      if (fl_bpe_rule(b, v.data[i], v.data[i + 1], &rank, &id) && rank < best_rank) {
        best = i;
        best_rank = rank;
        best_id = id;
      }
    if (best == SIZE_MAX) return v;
    v.data[best] = best_id;
    memmove(v.data + best + 1, v.data + best + 2, (v.len - best - 2) * sizeof *v.data);
    v.len--;
  }
}

START_TEST(merging_equals_its_plain_twin) {
  opened o = open_fixture("embedded/model.gguf");
  fl_vocab v = { 0 };
  fl_bpe b = { 0 };
  fl_merger m = { 0 };
  ck_assert_int_eq(fl_vocab_load(&v, o.gguf, false, NULL), FL_OK);
  ck_assert_int_eq(fl_bpe_init(&b, &v, o.gguf, NULL), FL_OK);
  fl_rng r = fl_rng_stream(1, FL_RNG_TEST, 0, 0, 0);
  for (int round = 0; round < 400; round++) {
    char text[64]; /* letters only: one piece; few different ones, so that merges compete */
    size_t len = 1 + fl_rng_below(&r, sizeof text);
    for (size_t i = 0; i < len; i++) text[i] = "etaoinshrdlu"[fl_rng_below(&r, 2 + round % 11)];
    fl_ids want = merge_ref(&b, text, len), got = { 0 };
    ck_assert_int_eq(fl_bpe_encode(&b, &m, &got, text, len), FL_OK);
    check_same_ids(&got, &want, "random letters");
    fl_ids_release(&want);
    fl_ids_release(&got);
  }
  fl_merger_release(&m);
  fl_bpe_release(&b);
  fl_vocab_release(&v);
  close_opened(&o);
}
END_TEST

START_TEST(cutting_first_changes_nothing) {
  opened o = open_fixture(small[1 + _i].file);
  fl_vocab v = { 0 };
  fl_bpe b = { 0 };
  fl_spm s = { 0 };
  fl_merger m = { 0 };
  ck_assert_int_eq(fl_vocab_load(&v, o.gguf, _i == 0, NULL), FL_OK);
  if (_i == 1) ck_assert_int_eq(fl_bpe_init(&b, &v, o.gguf, NULL), FL_OK);
  ck_assert_int_eq(fl_spm_init(&s, &v, _i == 1 ? &b : NULL, -1, "x", NULL), FL_OK);
  ck_assert(!s.joined['e'] && s.cut_break);
  fl_buf text = { 0 }, raw = { 0 };
  ck_assert_int_eq(fl_fs_read(&raw, fixture("embedded/docs/mine.md"), 1 << 20, NULL), FL_OK);
  for (size_t i = 0; i < raw.len; i++) {
    if (raw.data[i] == ' ') fl_buf_puts(&text, "\xE2\x96\x81");
    else fl_buf_putc(&text, raw.data[i]);
  }
  fl_ids cut = { 0 }, whole = { 0 };
  ck_assert_int_eq(fl_spm_encode(&s, &m, NULL, &cut, text.data, text.len), FL_OK);
  s.cut_break = false;
  memset(s.joined, true, sizeof s.joined);
  ck_assert_int_eq(fl_spm_encode(&s, &m, NULL, &whole, text.data, text.len), FL_OK);
  ck_assert_uint_gt(cut.len, 300);
  check_same_ids(&cut, &whole, "mine.md");
  fl_ids_release(&cut);
  fl_ids_release(&whole);
  fl_buf_release(&text);
  fl_buf_release(&raw);
  fl_merger_release(&m);
  fl_bpe_release(&b);
  fl_vocab_release(&v);
  close_opened(&o);
}
END_TEST

/* A SentencePiece vocabulary without byte tokens, to which the caller adds policy. */
static void make_pieces(gguf_maker *m, const char *const *texts, const float *scores,
                        const int32_t *types, size_t n) {
  make_str(m, "tokenizer.ggml.model", "llama");
  make_strs(m, "tokenizer.ggml.tokens", texts, n);
  make_f32s(m, "tokenizer.ggml.scores", scores, n);
  make_i32s(m, "tokenizer.ggml.token_type", types, n);
  make_u32(m, "tokenizer.ggml.unknown_token_id", 0);
  make_u32(m, "tokenizer.ggml.bos_token_id", 1);
}

static const char *const piece_text[] = { "<unk>", "<s>", "\xE2\x96\x81", "a",       "b", "c",
                                          "ab",    "abc", "bc",           "\u2581a", "ba" };
static const float piece_score[] = { 0, 0, -9, -9, -9, -9, -1, -2, -3, -4, -3 };
/* "ab" is unused: good for reaching "abc", never given out. */
static const int32_t piece_type[] = { 2, 3, 1, 1, 1, 1, 5, 1, 1, 1, 1 };

static const struct {
  const char *text;
  unsigned flags;
  const char *ids;
} piece_cases[] = {
  { "abc", FL_TOK_CONTINUE, "7" },  /* ab (unused) + c */
  { "ab", FL_TOK_CONTINUE, "3 4" }, /* ab falls back into its parts */
  { "abb", FL_TOK_CONTINUE, "3 4 4" },
  { "bab", FL_TOK_CONTINUE, "4 3 4" }, /* ab before ba by score, then taken apart */
  { "bba", FL_TOK_CONTINUE, "4 10" },
  { "a", 0, "9" }, /* the space prefix merges */
  { "a", FL_TOK_BOS, "1 9" },
  { "", FL_TOK_BOS, "1" },
  { "<s>a", FL_TOK_SPECIAL, "1 9" },  /* and comes again after a control token */
  { "<s>a", FL_TOK_CONTINUE, "0 3" }, /* one unknown for a run of them */
  { "xyza", FL_TOK_CONTINUE, "0 3" },
};

START_TEST(pieces_follow_sentencepiece) {
  gguf_maker m = { 0 };
  make_pieces(&m, piece_text, piece_score, piece_type, COUNT(piece_text));
  opened o = open_made(&m);
  fl_ids v = ids_of(o.tok, piece_cases[_i].text, piece_cases[_i].flags);
  ck_assert_str_eq(show_ids(&v), piece_cases[_i].ids);
  fl_ids_release(&v);
  close_opened(&o);
}
END_TEST

START_TEST(facts_of_a_file) {
  opened o = open_fixture("embedded/model.gguf"), g = open_fixture("tiny/tiny-gemma3.gguf");
  ck_assert_str_eq(fl_tokenizer_kind(o.tok), "bpe/qwen2");
  ck_assert_str_eq(fl_tokenizer_kind(g.tok), "spm");
  ck_assert_uint_eq(fl_tokenizer_n_vocab(o.tok), 2048);
  ck_assert_int_eq(fl_tokenizer_id(o.tok, "<|im_end|>"), 2045);
  ck_assert_int_eq(fl_tokenizer_id(o.tok, "no such token"), -1);
  ck_assert_int_eq(fl_tokenizer_eos(o.tok), 2045);
  ck_assert_int_eq(fl_tokenizer_bos(o.tok), -1);
  ck_assert(!fl_tokenizer_adds_bos(o.tok));
  ck_assert(fl_tokenizer_adds_bos(g.tok));
  ck_assert_int_eq(fl_tokenizer_bos(g.tok), 2);
  ck_assert(fl_tokenizer_is_end(o.tok, 2045));
  ck_assert(fl_tokenizer_is_end(o.tok, 2043));  /* <|endoftext|> */
  ck_assert(!fl_tokenizer_is_end(o.tok, 2044)); /* <|im_start|> */
  ck_assert(!fl_tokenizer_is_end(o.tok, -1));
  ck_assert(fl_tokenizer_is_end(g.tok, 1) && fl_tokenizer_is_end(g.tok, 5));
  char a[FL_HASH_TEXT], b[FL_HASH_TEXT];
  fl_tokenizer_hash(o.tok, a);
  fl_tokenizer_hash(g.tok, b);
  ck_assert_str_ne(a, b);
  close_opened(&o);
  o = open_fixture("embedded/model.gguf");
  fl_tokenizer_hash(o.tok, b);
  ck_assert_str_eq(a, b);
  close_opened(&o);
  close_opened(&g);
}
END_TEST

START_TEST(ids_are_appended) {
  opened o = open_fixture("tiny/tiny-gemma3.gguf");
  fl_ids v = { 0 };
  fl_ids_push(&v, 77);
  ck_assert_int_eq(fl_tokenize(o.tok, &v, NULL, 0, FL_TOK_BOS, NULL), FL_OK);
  ck_assert_str_eq(show_ids(&v), "77 2");
  fl_ids_release(&v);
  close_opened(&o);
}
END_TEST

/* ---- Limits ------------------------------------------------------------------------------- */

/* One piece of 300,000 letters, and one stretch without blanks of as many characters: within the
 * test's time limit only because merging is not quadratic. */
START_TEST(long_pieces) {
  static const char *const files[] = { "embedded/model.gguf", "tiny/tiny-gemma3.gguf" };
  opened o = open_fixture(files[_i]);
  fl_buf text = { 0 }, back = { 0 };
  for (int i = 0; i < 300000; i++) fl_buf_putc(&text, "theorin"[i % 7]);
  fl_ids v = ids_of(o.tok, text.data, 0);
  ck_assert_uint_lt(v.len, text.len);
  fl_detokenize(o.tok, &back, v.data, v.len, false);
  ck_assert_str_eq(back.data, text.data);
  fl_ids_release(&v);
  fl_buf_release(&text);
  fl_buf_release(&back);
  close_opened(&o);
}
END_TEST

/* ---- Errors ------------------------------------------------------------------------------- */

enum fault {
  NO_TOKENS,
  NO_MODEL,
  OTHER_MODEL,
  OTHER_PRE,
  NO_MERGES,
  NO_SCORES,
  FEW_TYPES,
  BAD_TYPE,
  FEW_SCORES,
  NAN_SCORE,
  BOS_OUT_OF_RANGE,
  NO_UNKNOWN,
  N_FAULTS
};

static const char *const fault_word[] = {
  "tokenizer.ggml.tokens",
  "tokenizer model",
  "wordpiece",
  "mystery",
  "merges",
  "scores",
  "2 token types for 3 tokens",
  "unknown type 9",
  "2 token scores for 3 tokens",
  "not finite",
  "bos_token_id is 3",
  "neither byte tokens nor an unknown",
};

static void make_faulty(gguf_maker *m, enum fault f) {
  static const char *const texts[] = { "a", "b", "ab" };
  static const char *const merges[] = { "a b" };
  const float scores[] = { -1, f == NAN_SCORE ? NAN : -2, -3 };
  const int32_t types[] = { 1, f == BAD_TYPE ? 9 : 1, 1 };
  bool pieces = f == NO_SCORES || f == NO_UNKNOWN;
  const char *model = f == OTHER_MODEL ? "wordpiece" : pieces ? "llama" : "gpt2";
  if (f != NO_MODEL) make_str(m, "tokenizer.ggml.model", model);
  make_str(m, "tokenizer.ggml.pre", f == OTHER_PRE ? "mystery" : "gpt-2");
  if (f != NO_TOKENS) make_strs(m, "tokenizer.ggml.tokens", texts, 3);
  make_i32s(m, "tokenizer.ggml.token_type", types, f == FEW_TYPES ? 2 : 3);
  if (f != NO_SCORES) make_f32s(m, "tokenizer.ggml.scores", scores, f == FEW_SCORES ? 2 : 3);
  if (f != NO_MERGES) make_strs(m, "tokenizer.ggml.merges", merges, 1);
  make_u32(m, "tokenizer.ggml.bos_token_id", f == BOS_OUT_OF_RANGE ? 3 : 0);
  if (f == NO_SCORES) make_u32(m, "tokenizer.ggml.unknown_token_id", 0);
}

START_TEST(damaged_vocabularies_are_refused) {
  gguf_maker m = { 0 };
  make_faulty(&m, (enum fault)_i);
  fl_gguf *g = make_open(&m);
  fl_tokenizer *t = NULL;
  fl_err err = { 0 };
  ck_assert_int_eq(fl_tokenizer_open(&t, g, &err), FL_EINPUT);
  ck_assert_ptr_null(t);
  ck_assert_msg(strstr(err.text, fault_word[_i]) != NULL, "%s", err.text);
  fl_gguf_close(g);
}
END_TEST

START_TEST(a_merge_cannot_make_a_control_token) {
  static const char *const merges[] = { "a b", "c d" };
  static const char *const texts[] = { "a", "b", "ab", "c", "d", "zz" };
  static const int32_t types[] = { 1, 1, 3, 1, 1, 1 };
  gguf_maker m = { 0 };
  make_str(&m, "tokenizer.ggml.model", "gpt2");
  make_strs(&m, "tokenizer.ggml.tokens", texts, COUNT(texts));
  make_i32s(&m, "tokenizer.ggml.token_type", types, COUNT(types));
  make_strs(&m, "tokenizer.ggml.merges", merges, COUNT(merges)); /* "cd" is not in the vocabulary */
  opened o = open_made(&m);
  fl_ids v = ids_of(o.tok, "abcd", 0), s = ids_of(o.tok, "abcd", FL_TOK_SPECIAL);
  ck_assert_str_eq(show_ids(&v), "0 1 3 4");
  ck_assert_str_eq(show_ids(&s), "2 3 4");
  fl_ids_release(&v);
  fl_ids_release(&s);
  close_opened(&o);
}
END_TEST

START_TEST(lack_of_memory_is_reported) {
  fl_gguf *g = NULL;
  ck_assert_int_eq(fl_gguf_open(&g, fixture(small[_i].file), NULL), FL_OK);
  fl_tokenizer *t = NULL;
  for (size_t n = 1; t == NULL; n++) {
    fl_err err = { 0 };
    fl_mem_fault_after(n);
    int rc = fl_tokenizer_open(&t, g, &err);
    fl_mem_fault_after(0);
    if (rc == FL_OK) break;
    ck_assert_int_eq(rc, FL_ENOMEM);
    ck_assert_str_ne(err.text, "");
    ck_assert_uint_lt(n, 1000);
  }
  fl_ids v = { 0 };
  fl_ids_push(&v, 9);
  for (size_t n = 1;; n++) {
    fl_mem_fault_after(n);
    int rc = fl_tokenize(t, &v, "the \xC3\xA9tude of a <|im_end|> word or two", 38, 0, NULL);
    fl_mem_fault_after(0);
    if (rc == FL_OK) break;
    ck_assert_int_eq(rc, FL_ENOMEM);
    ck_assert_uint_eq(v.len, 1);
    ck_assert_uint_lt(n, 1000);
    v.oom = false;
  }
  ck_assert_uint_gt(v.len, 5);
  fl_ids_release(&v);
  fl_tokenizer_close(t);
  fl_gguf_close(g);
}
END_TEST

Suite *suite_tokenizer(void) {
  Suite *s = suite_create("tokenizer");
  TCase *golden = tcase_create("Golden"), *core = tcase_create("Core");
  TCase *limits = tcase_create("Limits"), *errors = tcase_create("Errors");
  tcase_add_loop_test(golden, references_are_met, 0, COUNT(small));
  tcase_add_loop_test(golden, pretokenisers_cut_as_published, 0, COUNT(cuts));
  tcase_add_test(golden, llama3_takes_whole_pieces_first);
  tcase_add_loop_test(core, any_bytes_come_back, 0, COUNT(small));
  tcase_add_loop_test(core, markers_in_text_stay_text, 0, COUNT(small));
  tcase_add_test(core, control_tokens_show_only_when_asked);
  tcase_add_test(core, merging_equals_its_plain_twin);
  tcase_add_loop_test(core, cutting_first_changes_nothing, 0, 2);
  tcase_add_loop_test(core, pieces_follow_sentencepiece, 0, COUNT(piece_cases));
  tcase_add_test(core, facts_of_a_file);
  tcase_add_test(core, ids_are_appended);
  tcase_set_timeout(limits, 30);
  tcase_add_loop_test(limits, long_pieces, 0, 2);
  tcase_add_loop_test(errors, damaged_vocabularies_are_refused, 0, N_FAULTS);
  tcase_add_test(errors, a_merge_cannot_make_a_control_token);
  tcase_add_loop_test(errors, lack_of_memory_is_reported, 0, COUNT(small));
  suite_add_tcase(s, golden);
  suite_add_tcase(s, core);
  suite_add_tcase(s, limits);
  suite_add_tcase(s, errors);
  return s;
}
