// Package xlsx reads a sheet of an XLSX workbook into columns of a TCB table and writes them back, each value exactly or not
// at all.
//
// Words: a workbook has sheets, a sheet has rows of cells; the first row with a value is the header, the rows behind it
// with a value are the rows of the table. The header, and what the text of a cell means, are those of package tabular.
//
// What is read is what is stored, never what is shown:
//
//   - A number is its stored digits. 3, 3.0 and 1e3 are whole, 3.5 is not. A spreadsheet keeps 15 digits and makes the
//     others zeros, so a number of 16 digits and more in a 64-bit column is an error unless [Options.LongNumbers] says that
//     a program has written the file; digits in a cell of text are exact.
//   - A number whose style is a date is a date, by the date system of the workbook (1900 or 1904), to the millisecond, and
//     no number. Serial 60 of the 1900 system, the 29 February 1900 that never was, is an error, and so is a time of day
//     alone in a datetime column. A timespan column takes a style of hours, minutes and seconds, and counts days as 24
//     hours.
//   - Text is without its phonetic guide and its fonts; _xHHHH_ is the character of that code.
//   - A formula is its stored result; one without a result is an error. #N/A and the like are errors.
//   - A merged range of columns that are read is an error, unless [Options.Merged] says what it means.
//   - Hidden rows and columns are read. Rows without a value are left out; if rows follow them, a warning counts them.
//
// Memory is that of the columns, the shared strings and the merged ranges, not that of the sheet: empty cells and rows cost
// nothing. [Options.MaxUnzipped] bounds what is unpacked.
//
// The library excelize is not used: it holds what it reads, drops the difference between an empty text and no cell, and
// writes U+FFFD for control characters. The tests read its files and let it read ours.
//
// Functions are safe for concurrent use.
package xlsx
