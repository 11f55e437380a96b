package value

// Raw is the encoded bytes of one value: the lossless form of a value in memory. [Append] copies them, or transcodes
// them into the other codec; [Unmarshal] fills a Raw with the bytes of the value it finds.
type Raw struct {
	Codec Codec
	Data  []byte
}

// Kind is the kind of the value, Invalid when Data starts none.
func (r Raw) Kind() Kind {
	h, err := ReadHead(r.Codec, r.Data)
	if err != nil {
		return Invalid
	}
	return h.Kind
}

// Decode decodes the value, see [Decode].
func (r Raw) Decode(lim Limits) (any, error) { return Decode(r.Codec, r.Data, lim) }
