// Package tabular is what the adapters of text tables (csvtable, xlsx, jsonrows) have in common: the names of columns in
// a header, the rule by which the text of a cell is a value, a guess at the types, and the list of what is wrong.
//
// Words: a table is read row by row, a row is a list of cells. A cell is nothing, or text, a number, a truth value or a
// date. The header gives every cell of a row its column of the schema.
//
// # Header
//
// A cell of the header is the name of a column, or the decimal tag where no column has that name. "hp@7" is the column hp
// with the tag 7; "#hp@7" reserves the tag of a column that is gone, and "#note", in a header without tags, is left out,
// with a warning. All names carry tags or none does. With tags a column is found by its tag, and a name that is not the
// one in the schema is an error; without, by its name. An optional column of the schema can be missing, no other can.
//
// # Cells
//
// What the text of a cell means depends on its column alone:
//
//	column             empty cell          Null text (\N)    quoted empty cell
//	string             ""                  the text          ""
//	string, optional   absent              absent            ""
//	array              no elements         an error          no elements
//	array, optional    absent              absent            no elements
//	other              an error            an error          an error
//	other, optional    absent              absent            absent
//
// A cell is quoted when its table says that the text is there although it is empty: "" in quotes in CSV, a cell of text
// in a sheet. Quoted text is never the Null text. With [Options.EmptyText] an empty cell of an optional column of strings
// or arrays is as if it were quoted. Blanks are part of the text: " 3" is no number.
//
// An array is one cell, its elements separated by ";" ([Options.Separator]). In an element "\;" is the separator and "\\"
// the backslash; "\0" is an absent element, "\e" the empty string. An empty element is absent where elements are
// optional, else the empty string, else an error; no other escape is defined.
//
// [Cells] writes these forms, and what it writes reads as it was.
package tabular
