// Package csvtable reads CSV into columns of a TCB table and writes them back, each value exactly or not at all.
//
// Words: a record is a row of the file, a list of fields; the first is the header. The header, and what the text of a
// field means, are those of package tabular.
//
// The file is RFC 4180: a field can stand in quotes, in which a quote is doubled, and delimiters and line breaks are
// text, byte for byte. Records end in LF or CRLF. The text is UTF-8, with or without a byte order mark, or UTF-16 with
// one. The delimiter is the one of comma, semicolon and tab that the header has outside quotes, or the one that is
// declared, in [Options.Delimiter] or by a first line "sep=;". What is not allowed: a quote inside a field that does not
// start with one, text behind the closing quote, a CR alone outside quotes, a record with more or fewer fields than the
// header. Lines without a byte are left out; if records follow them, a warning counts them. An input without a header is a
// table without rows.
//
// encoding/csv is not used because it makes LF of a CRLF in quotes, and does not tell "" from an empty field.
//
// Nothing depends on the time zone or the language of the system. Functions are safe for concurrent use.
package csvtable
