/* check_documents.c - kinds that a library reads: HTML, PDF, mail, exports of Slack. Where the
 * program was built without the library, the refusal names its package. Expected texts are
 * written by hand. */
#include "source_util.h"

#ifdef HAVE_LIBARCHIVE
#include <archive.h>
#include <archive_entry.h>
#endif

/* --- HTML --- */

#ifdef HAVE_LIBXML2
START_TEST(html_of_a_page) {
  gives("page.html",
        "<!DOCTYPE html><html><head><title>Harbour &amp; tides</title><style>p{}</style>"
        "<script>var x='<p>no</p>';</script></head><body><nav><a href=/>Home</a></nav>\n"
        "<h1>The <em>lamp</em></h1><p>Lit  at\n dusk,&nbsp;by the keeper.<br>Out at dawn.</p>"
        "<ul><li>oil</li><li>wick</li></ul><table><tr><th>Day</th><th>Tide</th></tr>"
        "<tr><td>1</td><td>3.2 m</td></tr></table><pre>a  b\n c</pre>"
        "<div hidden>no</div><img src=x alt='A chart'></body></html>",
        "Harbour & tides\n\nHome\n\n# The lamp\n\nLit at dusk, by the keeper.\nOut at dawn.\n\n"
        "- oil\n- wick\n\nDay | Tide\n1 | 3.2 m\n\na  b\n c\n\nA chart\n");
}
END_TEST

START_TEST(html_that_is_broken_or_old) {
  gives("broken.html", "<p>one<div>two<b>three</p></td><li>four", "one\n\ntwothree\n- four\n");
  gives("latin.html",
        "<meta http-equiv=content-type content='text/html; charset=iso-8859-2'><p>\xB3\xF3\xBF",
        "\xC5\x82\xC3\xB3\xC5\xBC\n");
  put("wide.htm", "\xFF\xFE<\0p\0>\0\xE9\0", 10);
  ck_assert_str_eq(text_of("wide.htm"), "\xC3\xA9\n");
  puts_at("app.html", "<html><body><div id=root></div><script>go()</script></body></html>");
  refused(at("app.html"), FL_EINPUT, "no text in this page");
}
END_TEST

/* A tower of elements is walked without recursion. */
START_TEST(html_that_is_deep) {
  fl_buf b = { 0 };
  for (int i = 0; i < 20000; i++) fl_buf_puts(&b, "<div>");
  fl_buf_puts(&b, "bottom");
  put("deep.html", b.data, b.len);
  fl_source_list l = { 0 };
  fl_err err = { 0 };
  int rc = read1(&l, at("deep.html"), false, &err); /* the library's own limit may cut it off */
  ck_assert_msg(rc == FL_OK || strstr(err.text, "deep.html"), "%s", err.text);
  fl_source_release(&l);
  fl_buf_release(&b);
}
END_TEST
#endif

/* --- PDF: written by hand, one object after the other, the table of places at the end --- */

#ifdef HAVE_POPPLER
static void put_pdf(const char *rel, const char *const *content, int pages, const char *trailer) {
  fl_buf b = { 0 };
  size_t place[64];
  int n = 1;
  fl_buf_puts(&b, "%PDF-1.4\n");
  place[n++] = b.len;
  fl_buf_puts(&b, "1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n");
  place[n++] = b.len;
  fl_buf_puts(&b, "2 0 obj\n<</Type/Pages/Kids[");
  for (int i = 0; i < pages; i++) fl_buf_printf(&b, "%d 0 R ", 4 + 2 * i);
  fl_buf_printf(&b, "]/Count %d>>\nendobj\n", pages);
  place[n++] = b.len;
  fl_buf_puts(&b, "3 0 obj\n<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>\nendobj\n");
  for (int i = 0; i < pages; i++) {
    place[n++] = b.len;
    fl_buf_printf(&b,
                  "%d 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 400]/Contents %d 0 R"
                  "/Resources<</Font<</F 3 0 R>>>>>>\nendobj\n",
                  4 + 2 * i, 5 + 2 * i);
    place[n++] = b.len;
    fl_buf_printf(&b, "%d 0 obj\n<</Length %zu>>\nstream\n%s\nendstream\nendobj\n", 5 + 2 * i,
                  strlen(content[i]), content[i]);
  }
  size_t xref = b.len;
  fl_buf_printf(&b, "xref\n0 %d\n0000000000 65535 f \n", n);
  for (int i = 1; i < n; i++) fl_buf_printf(&b, "%010zu 00000 n \n", place[i]);
  fl_buf_printf(&b, "trailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%zu\n%%%%EOF\n", n, trailer,
                xref);
  put(rel, b.data, b.len);
  fl_buf_release(&b);
}

START_TEST(pdf_of_two_pages) {
  static const char *const pages[] = {
    "BT /F 12 Tf 20 300 Td (The keeper lit) Tj 0 -14 Td (the lamp.) Tj ET",
    "BT /F 12 Tf 20 300 Td (Page \\(two\\)) Tj ET"
  };
  put_pdf("two.pdf", pages, 2, "");
  ck_assert_str_eq(text_of("two.pdf"), "The keeper lit\nthe lamp.\n\nPage (two)\n");
}
END_TEST

START_TEST(pdf_without_text) {
  static const char *const pages[] = { "0.5 g 10 10 300 300 re f", "q Q" };
  put_pdf("scan.pdf", pages, 2, "");
  refused(at("scan.pdf"), FL_EINPUT, "no text in its 2 pages, so they are pictures");
}
END_TEST

/* The standard handler of 40 bits, with a password that is not the empty one. */
START_TEST(pdf_with_a_password) {
  static const char *const pages[] = { "BT /F 12 Tf 20 300 Td (secret) Tj ET" };
  put_pdf("locked.pdf", pages, 1,
          "/ID[<00112233445566778899aabbccddeeff><00112233445566778899aabbccddeeff>]"
          "/Encrypt<</Filter/Standard/V 1/R 2/P -4"
          "/O<000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f>"
          "/U<202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f>>>");
  refused(at("locked.pdf"), FL_EINPUT, "locked with a password");
}
END_TEST

START_TEST(pdf_that_is_none) {
  puts_at("not.pdf", "<html>404</html>");
  refused(at("not.pdf"), FL_EINPUT, "not a whole PDF file");
  puts_at("cut.pdf", "%PDF-1.4\n1 0 obj\n<</Type/Catalog");
  refused(at("cut.pdf"), FL_EINPUT, "not a whole PDF file");
  puts_at("empty.pdf", "");
  refused(at("empty.pdf"), FL_EINPUT, "empty");
}
END_TEST
#endif

/* --- mail --- */

#ifdef HAVE_GMIME
START_TEST(mail_in_nested_parts) {
  gives("mail.eml",
        "Received: by x\r\nFrom: =?utf-8?q?J=C3=B8n?= <jon@example.org>\r\nTo: ida@example.org\r\n"
        "Subject: =?iso-8859-1?Q?The_caf=E9?=\r\nDate: Tue, 3 Jan 2023 10:00:00 +0100\r\n"
        "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=A\r\n\r\n"
        "--A\r\nContent-Type: multipart/alternative; boundary=B\r\n\r\n"
        "--B\r\nContent-Type: text/plain; charset=iso-8859-1\r\n"
        "Content-Transfer-Encoding: quoted-printable\r\n\r\nOil costs 3=A3 a long li=\r\nne.\r\n"
        "--B\r\nContent-Type: text/html\r\n\r\n<p>never shown</p>\r\n--B--\r\n"
        "--A\r\nContent-Type: application/pdf; name=\"bill.pdf\"\r\n"
        "Content-Disposition: attachment; filename=\"bill.pdf\"\r\n"
        "Content-Transfer-Encoding: base64\r\n\r\nJVBERi0=\r\n"
        "--A\r\nContent-Type: message/rfc822\r\n\r\nFrom: eve@example.org\r\nSubject: Before\r\n"
        "Content-Type: text/plain\r\n\r\nThe first words.\r\n--A--\r\n",
        "Subject: The caf\xC3\xA9\nFrom: J\xC3\xB8n <jon@example.org>\nTo: ida@example.org\n"
        "Date: 2023-01-03 10:00 +0100\n\nOil costs 3\xC2\xA3 a long line.\n"
        "[attachment: bill.pdf, application/pdf]\n\n[forwarded message]\nSubject: Before\n"
        "From: eve@example.org\n\nThe first words.\n");
}
END_TEST

START_TEST(a_mailbox_is_one_document) {
  gives("box.mbox",
        "From a@example.org Tue Jan  3 10:00:00 2023\nFrom: a@example.org\nSubject: One\n\n"
        ">From here it is quoted.\n\nFrom b@example.org Wed Jan  4 10:00:00 2023\n"
        "From: b@example.org\nSubject: Two\n\nSecond.\n",
        "Subject: One\nFrom: a@example.org\n\n>From here it is quoted.\n\n---\n\n"
        "Subject: Two\nFrom: b@example.org\n\nSecond.\n");
  puts_at("not.mbox", "Dear all,\n");
  refused(at("not.mbox"), FL_EINPUT, "no mailbox");
}
END_TEST

/* Three kinds of parts in each other, as programs with pictures in their signatures send; then a
 * letter of a program that says nothing of its encoding. */
START_TEST(a_mailbox_of_odd_mail) {
  gives("odd.mbox",
        "From MAILER-DAEMON Mon Jan  2 03:04:05 2023\r\nFrom: \"Ida B.\" <ida@example.org>\r\n"
        "To: a@example.org, b@example.org\r\nSubject: =?utf-8?b?VMOlcm4=?= plans\r\n"
        "MIME-Version: 1.0\r\n"
        "Content-Type: multipart/mixed; boundary=\"==1\"\r\n\r\nThis is a multi-part message.\r\n"
        "--==1\r\nContent-Type: multipart/related; boundary=\"==2\"\r\n\r\n"
        "--==2\r\nContent-Type: multipart/alternative; boundary=\"==3\"\r\n\r\n"
        "--==3\r\nContent-Type: text/plain; charset=\"utf-8\"\r\n"
        "Content-Transfer-Encoding: base64\r\n\r\n"
        "VMOlcm5ldCBvcGVucw0K\r\n--==3--\r\n"
        "--==2\r\nContent-Type: image/png; name=\"logo.png\"\r\n"
        "Content-Transfer-Encoding: base64\r\n\r\n"
        "iVBO\r\n--==2--\r\n"
        "--==1\r\nContent-Type: text/plain; charset=iso-8859-1; name=\"list.txt\"\r\n"
        "Content-Disposition: attachment; filename=\"list.txt\"\r\n\r\noil\r\n--==1--\r\n\r\n"
        "From x Mon Jan  2 04:04:05 2023\r\nFrom: x@example.org\r\nSubject: no charset\r\n\r\n"
        "Caf\xE9\r\n",
        "Subject: T\xC3\xA5rn plans\nFrom: \"Ida B.\" <ida@example.org>\n"
        "To: a@example.org, b@example.org\n\n"
        "T\xC3\xA5rnet opens\n[attachment: logo.png, image/png]\n"
        "[attachment: list.txt, text/plain]\n\n---\n\n"
        "Subject: no charset\nFrom: x@example.org\n\nCaf\xC3\xA9\n");
}
END_TEST

/* Under the limit of the file, over that of the text: 17 MiB of one letter. */
START_TEST(a_mailbox_with_too_much_text) {
  fl_buf b = { 0 };
  fl_buf_puts(&b, "From a@example.org Tue Jan  3 10:00:00 2023\nFrom: a@example.org\n\n");
  while (b.len < (size_t)17 << 20)
    fl_buf_puts(&b, "The keeper writes the same line each day and each night.\n");
  put("long.mbox", b.data, b.len);
  fl_buf_release(&b);
  refused(at("long.mbox"), FL_EINPUT, "more than 16 MiB of text");
}
END_TEST

START_TEST(mail_that_is_odd) {
  puts_at("none.eml", "\njust words\n");
  refused(at("none.eml"), FL_EINPUT, "no mail in it");
#ifdef HAVE_LIBXML2
  gives("html.eml", "From: a@b\nContent-Type: text/html\n\n<p>Only <b>HTML</b></p>\n",
        "From: a@b\n\nOnly HTML\n");
#endif
  fl_buf b = { 0 }; /* parts in parts in parts */
  fl_buf_puts(&b, "From: a@b\n");
  for (int i = 0; i < 200; i++)
    fl_buf_printf(&b, "Content-Type: multipart/mixed; boundary=x%d\n\n--x%d\n", i, i);
  fl_buf_puts(&b, "\nbottom\n");
  put("deep.eml", b.data, b.len);
  ck_assert_ptr_nonnull(strstr(text_of("deep.eml"), "[parts nested too deep]"));
  fl_buf_release(&b);
}
END_TEST
#endif

/* --- Slack --- */

#ifdef HAVE_LIBARCHIVE
static void put_zip(const char *rel, const char *const (*entry)[2]) {
  struct archive *a = archive_write_new();
  archive_write_set_format_zip(a);
  ck_assert_int_eq(archive_write_open_filename(a, at(rel)), ARCHIVE_OK);
  for (; (*entry)[0]; entry++) {
    struct archive_entry *e = archive_entry_new();
    archive_entry_set_pathname(e, (*entry)[0]);
    archive_entry_set_size(e, (la_int64_t)strlen((*entry)[1]));
    archive_entry_set_filetype(e, AE_IFREG);
    archive_entry_set_perm(e, 0644);
    ck_assert_int_eq(archive_write_header(a, e), ARCHIVE_OK);
    archive_write_data(a, (*entry)[1], strlen((*entry)[1]));
    archive_entry_free(e);
  }
  archive_write_close(a);
  archive_write_free(a);
}

static const char *const workspace[][2] = {
  { "general/2024-01-02.json",
    "[{\"type\":\"message\",\"user\":\"U2\",\"ts\":\"1704189600.0001\","
    "\"text\":\"Tides &amp; <@U1>, "
    "see <https://example.org/t|the table> in <#C2|ship-yard>\"},"
    "{\"user\":\"U1\",\"subtype\":\"channel_join\",\"ts\":\"1704189601.1\",\"text\":\"joined\"},"
    "{\"username\":\"tidebot\",\"ts\":\"1704193200.2\",\"thread_ts\":\"1704189600.0001\","
    "\"text\":\"High at 9\",\"files\":[{\"name\":\"tide.png\"}]}]" },
  { "general/2024-01-01.json",
    "[{\"user\":\"U9\",\"ts\":\"1704103200.1\",\"text\":\"First\",\"attachments\":"
    "[{\"fallback\":\"a preview\"}]}]" },
  { "ship-yard/2024-01-01.json", "[{\"user\":\"U1\",\"ts\":\"1704103260.1\",\"text\":\"Paint\"}]" },
  { "quiet/2024-01-01.json", "[]" },
  { "../../escape/x.json", "[" },
  { "users.json", "[{\"id\":\"U2\",\"name\":\"ida\",\"profile\":{\"display_name\":\"Ida\","
                  "\"real_name\":\"I B\"}},"
                  "{\"id\":\"U1\",\"name\":\"jon\",\"profile\":{\"display_name\":\"\","
                  "\"real_name\":\"Jon C\"}}]" },
  { "channels.json", "[]" },
  { NULL, NULL }
};

START_TEST(slack_channels_are_documents) {
  put_zip("export.zip", workspace);
  fl_source_list l = { 0 };
  char want[300], name[300];
  ck_assert_int_eq(read1(&l, at("export.zip"), false, NULL), FL_OK);
  ck_assert_uint_eq(l.n, 2);
  snprintf(want, sizeof want, "%s#general", at("export.zip"));
  ck_assert_str_eq(l.doc[0].name, want);
  ck_assert_str_eq(l.doc[0].text,
                   "2024-01-01 10:00 U9: First\n    a preview\n"
                   "2024-01-02 10:00 Ida: Tides & @Jon C, see the table (https://example.org/t) in "
                   "#ship-yard\n  > 2024-01-02 11:00 tidebot: High at 9 [file: tide.png]\n");
  ck_assert_str_eq(l.doc[1].text, "2024-01-01 10:01 Jon C: Paint\n");
  /* by its name each channel is found again */
  fl_source_list again = { 0 };
  snprintf(name, sizeof name, "%s", l.doc[1].name);
  ck_assert_int_eq(read1(&again, name, false, NULL), FL_OK);
  ck_assert_uint_eq(again.n, 1);
  ck_assert_str_eq(again.doc[0].name, name);
  ck_assert_str_eq(again.doc[0].hash, l.doc[1].hash);
  ck_assert_str_ne(l.doc[0].hash, l.doc[1].hash);
  fl_source_release(&again);
  fl_source_release(&l);
  snprintf(name, sizeof name, "%s#gone", at("export.zip"));
  refused(name, FL_ENOENT, "nothing in it is called \"gone\"");
}
END_TEST

static char *repeated(const char *before, const char *s, size_t n, const char *after) {
  fl_buf b = { 0 };
  fl_buf_puts(&b, before);
  for (size_t i = 0; i < n; i++) fl_buf_puts(&b, s);
  fl_buf_puts(&b, after);
  return fl_buf_detach(&b);
}

/* Marks that never close take time in proportion to their number; short references to a long name
 * are refused before they are gigabytes. */
START_TEST(slack_that_blows_up) {
  char *open = repeated("[{\"user\":\"U1\",\"ts\":\"1\",\"text\":\"", "<", (size_t)4 << 20, "\"}]");
  const char *const marks[][2] = { { "channels.json", "[]" },
                                   { "a/2024-01-01.json", open },
                                   { NULL, NULL } };
  fl_source_list l = { 0 };
  put_zip("marks.zip", marks);
  ck_assert_int_eq(read1(&l, at("marks.zip"), false, NULL), FL_OK);
  ck_assert_uint_gt(l.doc[0].len, (size_t)4 << 20);
  fl_source_release(&l);
  char *name = repeated("[{\"id\":\"U1\",\"name\":\"", "Ida ", (size_t)1 << 18, "\"}]");
  char *text = repeated("[{\"user\":\"U2\",\"ts\":\"1\",\"text\":\"", "<@U1>", 10000, "\"}]");
  const char *const names[][2] = { { "users.json", name },
                                   { "a/2024-01-01.json", text },
                                   { NULL, NULL } };
  put_zip("names.zip", names);
  refused(at("names.zip"), FL_EINPUT, "more than 16 MiB of text");
  fl_free(open);
  fl_free(name);
  fl_free(text);
}
END_TEST

/* An export without users.json, as of a guest: direct messages, programs that speak in blocks,
 * marks of all sorts. */
START_TEST(slack_of_a_guest) {
  static const char *const guest[][2] = {
    { "channels.json", "[{\"id\":\"C1\",\"name\":\"general\"}]" },
    { "dms.json", "[]" },
    { "D0123/2024-02-01.json", "[{\"user\":\"U1\",\"ts\":\"1706745600.0\",\"text\":\"hello\"}]" },
    { "general/2024-02-01.json",
      "[{\"subtype\":\"bot_message\",\"username\":\"ci\",\"ts\":\"1706745600.0\","
      "\"text\":\"Build done\"},"
      "{\"user\":\"U1\",\"ts\":\"1706745660.0\","
      "\"text\":\"<!here> *look* <mailto:a@b.c|a@b.c> &lt;3 :smile:\","
      "\"edited\":{\"user\":\"U1\",\"ts\":\"1\"}}]" },
    { NULL, NULL }
  };
  fl_source_list l = { 0 };
  put_zip("guest.zip", guest);
  ck_assert_int_eq(read1(&l, at("guest.zip"), false, NULL), FL_OK);
  ck_assert_uint_eq(l.n, 2);
  ck_assert_str_eq(l.doc[0].text, "2024-02-01 00:00 U1: hello\n");
  ck_assert_str_eq(l.doc[1].text, "2024-02-01 00:00 ci: Build done\n"
                                  "2024-02-01 00:01 U1: @here *look* a@b.c (mailto:a@b.c) "
                                  "<3 :smile:\n");
  fl_source_release(&l);
}
END_TEST

START_TEST(archives_that_are_refused) {
  static const char *const other[][2] = { { "a/readme.txt", "hello" }, { NULL, NULL } };
  static const char *const bad[][2] = { { "users.json", "[]" },
                                        { "c/2024-01-01.json", "[{]" },
                                        { NULL, NULL } };
  put_zip("other.zip", other);
  refused(at("other.zip"), FL_EINPUT, "no export of Slack");
  put_zip("bad.zip", bad);
  refused(at("bad.zip"), FL_EINPUT, "c/2024-01-01.json in it is not valid JSON");
  puts_at("not.zip", "PK but no archive, whatever its name says");
  refused(at("not.zip"), FL_EINPUT, "not.zip");
}
END_TEST

/* 40 MB of blanks in a few KB. */
START_TEST(an_archive_that_blows_up) {
  size_t n = (size_t)40 << 20;
  char *blanks = fl_malloc(n + 1);
  memset(blanks, ' ', n);
  blanks[n] = '\0';
  const char *const bomb[][2] = { { "users.json", "[]" },
                                  { "c/2024-01-01.json", blanks },
                                  { NULL, NULL } };
  put_zip("bomb.zip", bomb);
  fl_free(blanks);
  refused(at("bomb.zip"), FL_EINPUT, "more than 16 MiB of text");
}
END_TEST
#endif

/* Sparse files over the limits: 16 MiB of HTML, 256 MiB of what holds more than its text. */
START_TEST(huge_files_are_refused_before_they_are_read) {
  static const struct {
    const char *file, *want;
    int mib;
  } files[] = {
#ifdef HAVE_LIBXML2
    { "huge.html", "100.0 MiB, over the limit of 16 MiB for HTML", 100 },
#endif
#ifdef HAVE_POPPLER
    { "huge.pdf", "300.0 MiB, over the limit of 256 MiB for PDF", 300 },
#endif
#ifdef HAVE_GMIME
    { "huge.eml", "300.0 MiB, over the limit of 256 MiB for mail", 300 },
    { "huge.mbox", "300.0 MiB, over the limit of 256 MiB for mail", 300 },
#endif
#ifdef HAVE_LIBARCHIVE
    { "huge.zip", "300.0 MiB, over the limit of 256 MiB for ", 300 },
#endif
    { "huge.txt", "over the limit", 100 }
  };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    FILE *f = fopen(at(files[i].file), "wb");
    ck_assert_int_eq(ftruncate(fileno(f), (off_t)files[i].mib << 20), 0);
    fclose(f);
    refused(at(files[i].file), FL_EINPUT, files[i].want);
  }
}
END_TEST

/* A kind whose library is missing is refused with the name of the package. */
START_TEST(missing_libraries_are_named) {
  static const struct {
    const char *file, *package;
    bool there;
  } kinds[] = {
#ifdef HAVE_LIBXML2
    { "a.html", "libxml2-dev", true },
#else
    { "a.html", "libxml2-dev", false },
#endif
#ifdef HAVE_POPPLER
    { "a.pdf", "libpoppler-glib-dev", true },
#else
    { "a.pdf", "libpoppler-glib-dev", false },
#endif
#ifdef HAVE_GMIME
    { "a.eml", "libgmime-3.0-dev", true },
#else
    { "a.eml", "libgmime-3.0-dev", false },
#endif
#ifdef HAVE_LIBARCHIVE
    { "a.zip", "libarchive-dev", true },
#else
    { "a.zip", "libarchive-dev", false },
#endif
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    fl_source_list l = { 0 };
    fl_err err = { 0 };
    puts_at(kinds[i].file, "x");
    int rc = read1(&l, at(kinds[i].file), false, &err);
    fl_source_release(&l);
    ck_assert_msg(rc != FL_OK || kinds[i].there, "%s", kinds[i].file);
    ck_assert_msg((strstr(err.text, kinds[i].package) != NULL) == !kinds[i].there, "%s", err.text);
  }
}
END_TEST

Suite *suite_documents(void);
Suite *suite_documents(void) {
  Suite *s = suite_create("documents");
  TCase *t = tcase_create("core");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, setup, teardown);
#ifdef HAVE_LIBXML2
  tcase_add_test(t, html_of_a_page);
  tcase_add_test(t, html_that_is_broken_or_old);
  tcase_add_test(t, html_that_is_deep);
#endif
#ifdef HAVE_POPPLER
  tcase_add_test(t, pdf_of_two_pages);
  tcase_add_test(t, pdf_without_text);
  tcase_add_test(t, pdf_with_a_password);
  tcase_add_test(t, pdf_that_is_none);
#endif
#ifdef HAVE_GMIME
  tcase_add_test(t, mail_in_nested_parts);
  tcase_add_test(t, a_mailbox_is_one_document);
  tcase_add_test(t, a_mailbox_of_odd_mail);
  tcase_add_test(t, a_mailbox_with_too_much_text);
  tcase_add_test(t, mail_that_is_odd);
#endif
#ifdef HAVE_LIBARCHIVE
  tcase_add_test(t, slack_channels_are_documents);
  tcase_add_test(t, slack_of_a_guest);
  tcase_add_test(t, slack_that_blows_up);
  tcase_add_test(t, archives_that_are_refused);
  tcase_add_test(t, an_archive_that_blows_up);
#endif
  tcase_add_test(t, huge_files_are_refused_before_they_are_read);
  tcase_add_test(t, missing_libraries_are_named);
  suite_add_tcase(s, t);
  return s;
}
