/* source_mail.c - mail: one message (.eml) or a mailbox of them (.mbox), by GMime. Of each message
 * the lines that matter of its head, then its text: of several versions of the same the plain one,
 * HTML where there is no other; attachments by name; forwarded messages inside. */
#include <string.h>

#include "base/utf8.h"
#include "sources/kind.h"
#include "sources/source.h"

#ifdef HAVE_GMIME
#include <gmime/gmime.h>

enum { MAX_NESTING = 32 };

typedef struct mail {
  fl_buf *out;
  const char *path;
  fl_err *err;
} mail;

static void put_line(mail *m, const char *name, const char *value) {
  if (value == NULL || value[0] == '\0') return;
  fl_buf_printf(m->out, "%s: ", name);
  fl_source_put_clean(m->out, value, strlen(value));
  fl_buf_putc(m->out, '\n');
}

static void put_addresses(mail *m, const char *name, InternetAddressList *list) {
  char *s = list ? internet_address_list_to_string(list, NULL, FALSE) : NULL;
  put_line(m, name, s);
  g_free(s);
}

static void put_head(mail *m, GMimeMessage *message) {
  GDateTime *date = g_mime_message_get_date(message);
  char *when = date ? g_date_time_format(date, "%Y-%m-%d %H:%M %z") : NULL;
  put_line(m, "Subject", g_mime_message_get_subject(message));
  put_addresses(m, "From", g_mime_message_get_from(message));
  put_addresses(m, "To", g_mime_message_get_to(message));
  put_addresses(m, "Cc", g_mime_message_get_cc(message));
  put_line(m, "Date", when);
  g_free(when);
}

static int put_part(mail *m, GMimeObject *part, int depth);

static int put_message(mail *m, GMimeMessage *message, int depth) {
  put_head(m, message);
  GMimeObject *body = g_mime_message_get_mime_part(message);
  if (body == NULL) return FL_OK;
  fl_buf_putc(m->out, '\n');
  return put_part(m, body, depth + 1);
}

static bool is_type(GMimeObject *part, const char *type, const char *subtype) {
  return g_mime_content_type_is_type(g_mime_object_get_content_type(part), type, subtype);
}

/* Text of a letter that does not say its encoding, or says ASCII and is not. */
static bool guess_encoding(mail *m, GMimeTextPart *part, const char *s, size_t len) {
  const char *said = g_mime_text_part_get_charset(part);
  const fl_source_input in = { m->path, s, len };
  fl_buf text = { 0 };
  size_t bad;
  const bool guessed = (said == NULL || g_ascii_strcasecmp(said, "us-ascii") == 0) &&
                       !fl_utf8_valid(s, len, &bad) && fl_source_decode(&text, &in, NULL) == FL_OK;
  if (guessed) fl_source_put_clean(m->out, text.data ? text.data : "", text.len);
  fl_buf_release(&text);
  return guessed;
}

static int put_text(mail *m, GMimeTextPart *part) {
  char *s = g_mime_text_part_get_text(part);
  int rc = FL_OK;
  if (s == NULL) return FL_OK;
  size_t len = strlen(s), before = m->out->len;
  if (is_type(GMIME_OBJECT(part), "text", "html"))
    rc = fl_source_html_text(m->out, m->path, s, len, "UTF-8", m->err);
  else if (!guess_encoding(m, part, s, len)) fl_source_put_clean(m->out, s, len);
  if (m->out->len > before && m->out->data[m->out->len - 1] != '\n') fl_buf_putc(m->out, '\n');
  g_free(s);
  return rc;
}

static void put_attachment(mail *m, GMimePart *part) {
  const char *name = g_mime_part_get_filename(part);
  char *type =
      g_mime_content_type_get_mime_type(g_mime_object_get_content_type(GMIME_OBJECT(part)));
  fl_buf_puts(m->out, "[attachment: ");
  if (name) fl_source_put_clean(m->out, name, strlen(name));
  fl_buf_printf(m->out, "%s%s]\n", name ? ", " : "", type ? type : "");
  g_free(type);
}

/* Versions of the same, the richest last: the plain text if there is one, else the simplest. */
static int put_alternative(mail *m, GMimeMultipart *multi, int depth) {
  int n = g_mime_multipart_get_count(multi);
  for (int i = 0; i < n; i++) {
    GMimeObject *part = g_mime_multipart_get_part(multi, i);
    if (is_type(part, "text", "plain")) return put_part(m, part, depth + 1);
  }
  return n < 1 ? FL_OK : put_part(m, g_mime_multipart_get_part(multi, 0), depth + 1);
}

static int put_part(mail *m, GMimeObject *part, int depth) {
  int rc = FL_OK;
  if (depth > MAX_NESTING) {
    fl_buf_puts(m->out, "[parts nested too deep]\n");
    return FL_OK;
  }
  if (m->out->len > FL_SOURCE_MAX_BYTES) return fl_source_too_much(m->path, m->err);
  if (GMIME_IS_MESSAGE_PART(part)) {
    GMimeMessage *inner = g_mime_message_part_get_message(GMIME_MESSAGE_PART(part));
    fl_buf_puts(m->out, "\n[forwarded message]\n");
    if (inner) rc = put_message(m, inner, depth);
  } else if (GMIME_IS_MULTIPART(part) && is_type(part, "multipart", "alternative")) {
    rc = put_alternative(m, GMIME_MULTIPART(part), depth);
  } else if (GMIME_IS_MULTIPART(part)) {
    int n = g_mime_multipart_get_count(GMIME_MULTIPART(part));
    for (int i = 0; rc == FL_OK && i < n; i++)
      rc = put_part(m, g_mime_multipart_get_part(GMIME_MULTIPART(part), i), depth + 1);
  } else if (GMIME_IS_TEXT_PART(part) && !g_mime_part_is_attachment(GMIME_PART(part))) {
    rc = put_text(m, GMIME_TEXT_PART(part));
  } else if (GMIME_IS_PART(part) && !is_type(part, "application", "pgp-signature")) {
    put_attachment(m, GMIME_PART(part));
  }
  return rc;
}

static bool has_head(GMimeMessage *message) {
  static const char *const names[] = { "From", "Date", "Subject", "To", "Message-ID", "Received" };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (g_mime_object_get_header(GMIME_OBJECT(message), names[i])) return true;
  return false;
}

static int read_messages(mail *m, const fl_source_input *in, GMimeFormat format) {
  GMimeStream *stream = g_mime_stream_mem_new_with_buffer(in->bytes, in->len);
  GMimeParser *parser = g_mime_parser_new_with_stream(stream);
  int rc = FL_OK;
  size_t n = 0;
  g_mime_parser_set_format(parser, format);
  do {
    GMimeMessage *message = g_mime_parser_construct_message(parser, NULL);
    if (message == NULL) break;
    if (has_head(message)) {
      if (n++ > 0) fl_buf_puts(m->out, "\n---\n\n");
      rc = put_message(m, message, 0);
    }
    g_object_unref(message);
  } while (rc == FL_OK && format == GMIME_FORMAT_MBOX && !g_mime_parser_eos(parser));
  g_object_unref(parser);
  g_object_unref(stream);
  if (rc == FL_OK && n == 0 && in->len > 0)
    return fl_fail(m->err, FL_EINPUT,
                   "%s: no mail in it: no From, To, Date or Subject at its "
                   "beginning; leave it out",
                   in->path);
  return rc;
}

static int read_mail(fl_buf *text, const fl_source_input *in, GMimeFormat format, fl_err *err) {
  mail m = { text, in->path, err };
  g_mime_init();
  return read_messages(&m, in, format);
}

static int read_eml(fl_buf *text, const fl_source_input *in, fl_err *err) {
  return read_mail(text, in, GMIME_FORMAT_MESSAGE, err);
}

static int read_mbox(fl_buf *text, const fl_source_input *in, fl_err *err) {
  if (in->len > 0 && (in->len < 5 || memcmp(in->bytes, "From ", 5) != 0))
    return fl_fail(err, FL_EINPUT,
                   "%s: no mailbox: its first line does not begin with \"From \"; "
                   "a single message is named .eml",
                   in->path);
  return read_mail(text, in, GMIME_FORMAT_MBOX, err);
}

#define NEEDS NULL
#define READ_EML read_eml
#define READ_MBOX read_mbox
#else
#define NEEDS "libgmime-3.0-dev"
#define READ_EML NULL
#define READ_MBOX NULL
#endif

static const char *const eml_suffixes[] = { ".eml", NULL };
static const char *const mbox_suffixes[] = { ".mbox", ".mbx", NULL };

const fl_source_kind fl_source_kind_eml = { .name = "mail",
                                            .suffixes = eml_suffixes,
                                            .needs = NEEDS,
                                            .max_bytes = FL_SOURCE_MAX_FILE,
                                            .read = READ_EML };
const fl_source_kind fl_source_kind_mbox = { .name = "mailbox",
                                             .suffixes = mbox_suffixes,
                                             .needs = NEEDS,
                                             .max_bytes = FL_SOURCE_MAX_FILE,
                                             .read = READ_MBOX };
