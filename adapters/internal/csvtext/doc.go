// Package csvtext takes CSV apart and puts it together, exactly: fields say whether they stood in quotes, line breaks in
// quotes stay as they are, and what is no CSV is an error that names the line.
package csvtext
