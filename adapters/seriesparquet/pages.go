package seriesparquet

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/spilehq/spile/fault"
)

const (
	// readAhead is what is read of a column at once: small beside a row group, large beside a request.
	readAhead = 256 << 10
	// maxHeader bounds the header of a page. Those with statistics of long values have some kilobytes.
	maxHeader = 16 << 20
	// maxPage bounds a decompressed page. Writers make pages of 1 MiB, and a label has 64 MiB at most.
	maxPage = 256 << 20
	// maxPageValues bounds the values of a page, of which nulls take no bytes in the file.
	maxPageValues = 16 << 20
	// maxOpen bounds the decompressed pages and dictionaries that are held at once, of all columns.
	maxOpen = 1 << 30
)

// pageReader is a column of a row group on its way to the library. It reads the bytes once, in order, and gives the library
// those of a page when it has checked what the header of the page claims: the library allocates that.
type pageReader struct {
	src   io.ReaderAt
	end   int64 // of the column in the file
	codec format.CompressionCodec
	open  *int64 // decompressed bytes held for all columns

	buf     []byte // the bytes from at on
	at      int64
	pageEnd int64 // up to which they may be given
	held    int64 // what of open is the page
	err     error
	zip     *zstd.Decoder
}

// close frees the decoder.
func (r *pageReader) close() {
	if r.zip != nil {
		r.zip.Close()
	}
}

// ReadAt gives bytes of one page, maybe fewer than were asked for: the library reads through a buffer that asks again.
func (r *pageReader) ReadAt(p []byte, off int64) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if off < r.at || off >= r.pageEnd {
		if off >= r.end {
			return 0, io.EOF
		}
		if r.err = r.load(off); r.err != nil {
			return 0, r.err
		}
	}
	return copy(p, r.buf[off-r.at:r.pageEnd-r.at]), nil
}

// fill makes n bytes from r.at on be there, or all that are.
func (r *pageReader) fill(n int64) error {
	n = min(n, r.end-r.at)
	have := int64(len(r.buf))
	if have >= n {
		return nil
	}
	n = min(max(n, readAhead), r.end-r.at)
	if int64(cap(r.buf)) < n {
		r.buf = append(make([]byte, 0, n), r.buf...)
	}
	r.buf = r.buf[:n]
	if _, err := r.src.ReadAt(r.buf[have:], r.at+have); err != nil && err != io.EOF {
		return err
	}
	return nil
}

// load reads the page at an offset.
func (r *pageReader) load(off int64) error {
	if off >= r.at && off < r.at+int64(len(r.buf)) {
		r.buf = append(r.buf[:0], r.buf[off-r.at:]...)
	} else {
		r.buf = r.buf[:0]
	}
	r.at, r.pageEnd = off, off
	var size int
	for want := int64(1 << 10); ; want *= 8 {
		if err := r.fill(want); err != nil {
			return err
		}
		var err error
		if size, err = thriftBounds(r.buf); err == nil {
			break
		}
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			return err
		}
		if int64(len(r.buf)) == r.end-r.at || want > maxHeader {
			return corrupt("the header of a page is cut off").At(off)
		}
	}
	var protocol thrift.CompactProtocol
	var h format.PageHeader
	if err := thrift.NewDecoder(protocol.NewReaderFromBytes(bytes.Clone(r.buf[:size]))).Decode(&h); err != nil {
		return corrupt("the header of a page").Because(err).At(off)
	}
	if left := r.end - r.at - int64(size); h.CompressedPageSize < 0 || int64(h.CompressedPageSize) > left {
		return corrupt("a page of %d bytes, and the column has %d left", h.CompressedPageSize, left).At(off)
	}
	if err := r.fill(int64(size) + int64(h.CompressedPageSize)); err != nil {
		return err
	}
	r.pageEnd = r.at + int64(size) + int64(h.CompressedPageSize)
	if err := r.check(&h, r.buf[size:r.pageEnd-r.at]); err != nil {
		return err.At(off)
	}
	return nil
}

func corrupt(format string, args ...any) *fault.Error {
	return fault.New(fault.Corrupt, "seriesparquet", format, args...)
}

// check holds the header of a page against its bytes.
func (r *pageReader) check(h *format.PageHeader, body []byte) *fault.Error {
	switch r.codec {
	case format.Uncompressed, format.Snappy, format.Gzip, format.Brotli, format.Zstd:
	case format.Lz4Raw:
		// parquet-go v0.32.0 gives other bytes for pages that LZ4 makes less than three times shorter, and does not end with
		// some broken ones.
		return fault.New(fault.UnsupportedCodec, "seriesparquet", "the compression %s is not read; write the file with Zstandard or Snappy", r.codec)
	default:
		return fault.New(fault.UnsupportedCodec, "seriesparquet", "the compression %s is not known", r.codec)
	}
	claim := int64(h.UncompressedPageSize)
	if claim < 0 || claim > maxPage {
		return fault.New(fault.Limit, "seriesparquet", "a page of %d bytes, at most %d", claim, maxPage)
	}
	values, levels, compressed := int32(0), int64(0), true
	switch h.Type {
	case format.DataPage:
		values = h.DataPageHeader.V.NumValues
	case format.DataPageV2:
		v := &h.DataPageHeaderV2.V
		values = max(v.NumValues, v.NumRows, v.NumNulls)
		levels = int64(v.RepetitionLevelsByteLength) + int64(v.DefinitionLevelsByteLength)
		if v.RepetitionLevelsByteLength < 0 || v.DefinitionLevelsByteLength < 0 || levels > int64(len(body)) || levels > claim {
			return corrupt("levels of %d bytes in a page of %d", levels, len(body))
		}
		compressed = !v.IsCompressed.Valid || v.IsCompressed.V
	case format.DictionaryPage:
		if values = h.DictionaryPageHeader.V.NumValues; int64(values) > claim/4 { // of four bytes each at least
			return corrupt("a dictionary of %d values in %d bytes", values, claim)
		}
	}
	if values < 0 || values > maxPageValues {
		return fault.New(fault.Limit, "seriesparquet", "a page of %d values, at most %d", values, maxPageValues)
	}
	if h.Type != format.DictionaryPage { // which stays until the column ends
		*r.open -= r.held
		r.held = 0
	}
	size := claim + int64(len(body)) + 8*int64(values)
	if *r.open+size > maxOpen {
		return fault.New(fault.Limit, "seriesparquet", "pages of %d bytes are open at once, at most %d", *r.open+size, maxOpen)
	}
	*r.open += size
	if h.Type != format.DictionaryPage {
		r.held = size
	}
	if !compressed {
		return nil
	}
	got, err := r.decompressed(body[levels:], claim-levels)
	switch {
	case err != nil:
		return corrupt("a page that does not decompress").Because(err)
	case got != claim-levels:
		return corrupt("a page of more or fewer bytes than the %d that its header says", claim)
	}
	return nil
}

// decompressed finds how many bytes a body decompresses to, without keeping them, or a number above most. The compression is
// one of those that check has let through.
func (r *pageReader) decompressed(body []byte, most int64) (int64, error) {
	if len(body) == 0 || r.codec == format.Uncompressed {
		return int64(len(body)), nil
	}
	var in io.Reader
	switch r.codec {
	case format.Snappy:
		n, err := snappy.DecodedLen(body)
		return int64(n), err
	case format.Zstd:
		if r.zip == nil {
			var err error
			// The memory is that of the window, which is no larger than the page needs.
			if r.zip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxPage)); err != nil {
				return 0, err
			}
		}
		if err := r.zip.Reset(bytes.NewReader(body)); err != nil {
			return 0, err
		}
		in = r.zip
	case format.Gzip:
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		in = z
	case format.Brotli:
		in = brotli.NewReader(bytes.NewReader(body))
	}
	return io.Copy(io.Discard, io.LimitReader(in, most+1))
}
