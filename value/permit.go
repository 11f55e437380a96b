package value

// Permit is the cause of an error that an option would have let pass, and names the option:
//
//	var p value.Permit
//	if errors.As(err, &p) && p == value.PermitNonFinite { … }
//
// It is for programs, and adds nothing to the message: what helps is not the same everywhere.
type Permit string

// The options that permit something.
const (
	PermitNonFinite   Permit = "NonFinite"   // of [JSONOptions]: NaN and the infinities
	PermitInvalidUTF8 Permit = "InvalidUTF8" // of [JSONOptions] and [JSONReadOptions]
	PermitKeys        Permit = "Keys"        // of [JSONOptions]: keys that are not strings
	PermitDup         Permit = "Dup"         // of [JSONOptions]: keys that occur twice
	PermitKeepDup     Permit = "KeepDup"     // of [JSONReadOptions]: keys that occur twice
	PermitLossless    Permit = "Lossless"    // of [JSONOptions] and [JSONReadOptions], not set: what would be lost is counted
	PermitCodec       Permit = "Codec"       // the other [Codec] holds the value
)

// Error is empty.
func (p Permit) Error() string { return "" }
