package tcb

// promotes reports whether a member of an element and a logical type takes the values of a file's column: its own
// element, and those whose every value it holds (docs/format/tcb.md, "Evolution"). Dates and spans are i64 and nothing
// else; nothing is narrowed.
func promotes(file, member Element, logical Logical) bool {
	if file == member {
		return true
	}
	if logical != Number {
		return false
	}
	switch member {
	case I32:
		return file == Enum
	case I64:
		return file == I32 || file == Enum
	case F64:
		return file == F32 || file == I32
	}
	return false
}
