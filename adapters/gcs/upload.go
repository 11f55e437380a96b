package gcs

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/spilehq/spile/adapters/internal/store"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source/remote"
)

// Create returns a writer for an object. With [remote.WriteOptions.NoOverwrite] it asks first whether there is one, and the
// store is told not to replace one that comes later.
func (s *Store) Create(ctx context.Context, url string, o *remote.WriteOptions) (*remote.Writer, error) {
	at, err := parseObject(url)
	if err != nil {
		return nil, err
	}
	if at.generation != "" {
		return nil, fault.New(fault.Invalid, pkg, "a generation cannot be written").In(url)
	}
	u := &upload{store: s, object: at, tail: piece{key: at.key}}
	if o != nil && o.Hold > 0 {
		u.held = true
		name := at.key + ".spile-" + strings.ToLower(rand.Text())
		u.tail.key, u.head.key = name+".tail", name+".head"
	}
	if o != nil && o.NoOverwrite {
		u.onlyNew = "0" // the generation of an object that is not there
		// The answer does not matter but when it is that there is an object: who may write need not be allowed to ask.
		a, err := s.try(ctx, url, "ask for the object", request{method: http.MethodGet, url: s.address(objectPath(at.bucket, at.key), "fields", "generation")})
		if err == nil && a.status == 200 {
			return nil, store.Exists(pkg, url)
		}
	}
	return remote.NewWriter(ctx, u, o)
}

// upload is one upload in a session, or two that are joined.
type upload struct {
	store *Store
	object
	onlyNew string // the condition of the request that makes the object
	held    bool   // part 0 comes last

	session    string // the URL of the session; who has it can write the object
	tail, head piece
	whole      piece // what Put or Complete has made
}

// piece is an object that was made of parts: the one that is wanted, or one of the two that are joined.
type piece struct {
	key        string
	generation string // of what was made, "" before
	length     int64  // of what was sent
	sum        uint32 // CRC32C
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (p *piece) add(b []byte) {
	p.length += int64(len(b))
	p.sum = crc32.Update(p.sum, castagnoli, b)
}

func (u *upload) Name() string { return u.url }

// Limits: a request of a session brings a multiple of 256 KiB, unless it is the last.
func (u *upload) Limits() remote.UploadLimits {
	return remote.UploadLimits{Multiple: 256 << 10, Parallel: 1}
}

const octets = "application/octet-stream"

// condition is the generation that the object to be replaced must have.
func (u *upload) condition(key string) string {
	if key == u.key {
		return u.onlyNew
	}
	return "0"
}

func (u *upload) Put(ctx context.Context, p []byte) error {
	u.whole = piece{key: u.key}
	return u.put(ctx, &u.whole, p)
}

// put makes an object by one request.
func (u *upload) put(ctx context.Context, made *piece, p []byte) error {
	made.add(p)
	a, err := u.store.try(ctx, u.url, "write the object", request{
		method: http.MethodPost,
		url: u.store.address("/upload"+bucketPath(u.bucket), "uploadType", "media", "name", made.key,
			"ifGenerationMatch", u.condition(made.key)),
		header: http.Header{"Content-Type": {octets}},
		body:   p,
	})
	if err != nil {
		return err
	}
	return u.made(ctx, made, "write the object", a)
}

// made looks at the answer to the request that has made an object: whether it was made, and of the bytes that were sent.
func (u *upload) made(ctx context.Context, p *piece, doing string, a answer) error {
	if a.lost && (a.status == 412 || a.status == 404 || a.status == 410) && u.find(ctx, p) {
		return nil
	}
	if a.status == 412 && p.key == u.key {
		return store.Exists(pkg, u.url)
	}
	if a.status >= 300 {
		return store.Refused(pkg, u.url, doing, a.status, a.message)
	}
	var object resource
	if err := json.Unmarshal(a.body, &object); err != nil || object.Generation == "" {
		return fault.New(fault.Corrupt, pkg, "the store has made an object without saying which").In(u.url)
	}
	p.generation = object.Generation
	sum := p.checksum()
	if object.Size == p.length && object.Crc32c == sum {
		return nil
	}
	u.remove(ctx, p)
	return fault.New(fault.Corrupt, pkg, "sent %d bytes with the CRC32C %s, the store has %d with %s", p.length, sum, object.Size, object.Crc32c).In(u.url)
}

// resource is what the store says of an object.
type resource struct {
	Generation string
	Size       int64 `json:",string"`
	Crc32c     string
}

func (p *piece) checksum() string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, p.sum))
}

// find looks for an object that the store has made, and whose answer was lost. Its bytes are those that were sent.
func (u *upload) find(ctx context.Context, p *piece) bool {
	a, err := u.store.try(ctx, u.url, "ask for the object", request{
		method: http.MethodGet, url: u.store.address(objectPath(u.bucket, p.key), "fields", "generation,size,crc32c"),
	})
	var object resource
	if err != nil || a.status != 200 || json.Unmarshal(a.body, &object) != nil || object.Size != p.length || object.Crc32c != p.checksum() {
		return false
	}
	p.generation = object.Generation
	return p.generation != ""
}

// Begin opens the session.
func (u *upload) Begin(ctx context.Context) error {
	a, err := u.store.try(ctx, u.url, "begin an upload", request{
		method: http.MethodPost,
		url: u.store.address("/upload"+bucketPath(u.bucket), "uploadType", "resumable", "name", u.tail.key,
			"ifGenerationMatch", u.condition(u.tail.key)),
		header: http.Header{"Content-Type": {"application/json"}, "X-Upload-Content-Type": {octets}},
		body:   []byte("{}"),
	})
	switch {
	case err != nil:
		return err
	case a.status == 412:
		return store.Exists(pkg, u.url)
	case a.status >= 300:
		return store.Refused(pkg, u.url, "begin an upload", a.status, a.message)
	}
	u.session = a.header.Get("Location")
	if !strings.HasPrefix(u.session, u.store.base+"/") {
		u.session = ""
		return fault.New(fault.Corrupt, pkg, "the store sends the upload to another host").In(u.url)
	}
	return nil
}

func (u *upload) Part(ctx context.Context, p remote.Part) error {
	if u.held && p.Number == 0 {
		return u.put(ctx, &u.head, p.Bytes)
	}
	start := u.tail.length
	u.tail.add(p.Bytes)
	return u.chunk(ctx, p.Bytes, start, p.Last)
}

// chunk sends bytes of a session, which begin at start. The store may take some of them and ask for the rest; after a failure
// it is asked how many it has.
func (u *upload) chunk(ctx context.Context, b []byte, start int64, last bool) error {
	const doing = "send a part"
	end := start + int64(len(b))
	total := "*"
	if last {
		total = strconv.FormatInt(end, 10)
	}
	failures, ask, lost := 0, false, false
	for from := start; ; {
		span := fmt.Sprintf("bytes %d-%d/%s", from, end-1, total)
		body := b[from-start:]
		switch {
		case ask:
			span, body = "bytes */"+total, nil
		case from == end:
			span = "bytes */" + total
		}
		a, asked, err := u.store.send(ctx, request{
			method: http.MethodPut, url: u.session, header: http.Header{"Content-Type": {octets}, "Content-Range": {span}}, body: body,
		})
		a.lost = lost
		switch {
		case err != nil:
			lost = last
			// The text of the cause has no URL, which would be one that lets the object be written.
			var stop bool
			if stop, err = failed(ctx, u.url, doing, err); stop {
				return err
			}
		case a.status == 308:
			have, ok := kept(a.header.Get("Range"))
			if !ok || have < start || have > end {
				return fault.New(fault.Corrupt, pkg, "the store has the bytes %q of those up to %d, expected at least %d", a.header.Get("Range"), end, start).In(u.url)
			}
			if have == end && !last {
				return nil
			}
			if have > from || ask {
				if have > from {
					failures = 0
				}
				from, ask = have, false
				continue
			}
			err = fault.New(nil, pkg, "the store takes no more bytes at %d", from).In(u.url)
		case passing(a.status):
			err = store.Refused(pkg, u.url, doing, a.status, a.message)
		case a.status < 300 && !last:
			return fault.New(fault.Corrupt, pkg, "the store takes %d bytes for the whole object", end).In(u.url)
		default:
			if a.status < 300 {
				u.session = ""
			}
			return u.made(ctx, &u.tail, doing, a)
		}
		if failures++; failures >= u.store.tries {
			return err
		}
		if stopped := pause(ctx, failures-1, asked); stopped != nil {
			return fault.New(nil, pkg, "cannot "+doing).In(u.url).Because(stopped)
		}
		ask = true
	}
}

// kept is the number of bytes that the store has, as a Range says it: "bytes=0-99" or, for none, nothing.
func kept(s string) (int64, bool) {
	if s == "" {
		return 0, true
	}
	last, ok := strings.CutPrefix(s, "bytes=0-")
	n, err := strconv.ParseInt(last, 10, 64)
	return n + 1, ok && err == nil && n >= 0 && n < 1<<62
}

// CopyPart is not called, since Limits says that nothing is copied.
func (u *upload) CopyPart(context.Context, remote.CopiedPart) error {
	return fault.New(fault.Invalid, pkg, "the store copies no ranges").In(u.url)
}

// Complete joins the two pieces, where there are two; otherwise the last part has made the object.
func (u *upload) Complete(ctx context.Context, parts int) error {
	if !u.held {
		u.whole = u.tail
		return nil
	}
	type source struct {
		Name       string `json:"name"`
		Generation string `json:"generation"`
	}
	type destination struct {
		ContentType string `json:"contentType"`
	}
	body, err := json.Marshal(struct {
		Sources     []source    `json:"sourceObjects"`
		Destination destination `json:"destination"`
	}{[]source{{u.head.key, u.head.generation}, {u.tail.key, u.tail.generation}}, destination{octets}})
	if err != nil {
		return fault.New(fault.Invalid, pkg, "").In(u.url).Because(err)
	}
	a, err := u.store.try(store.Working(ctx, u.head.length+u.tail.length), u.url, "join the parts", request{
		method: http.MethodPost,
		url:    u.store.address(objectPath(u.bucket, u.key)+"/compose", "ifGenerationMatch", u.onlyNew),
		header: http.Header{"Content-Type": {"application/json"}},
		body:   body,
	})
	switch {
	case err != nil:
		return err
	case a.status == 412:
		return store.Exists(pkg, u.url)
	case a.status >= 300:
		return store.Refused(pkg, u.url, "join the parts", a.status, a.message)
	}
	var object struct{ Generation string }
	if err := json.Unmarshal(a.body, &object); err == nil {
		u.whole = piece{key: u.key, generation: object.Generation}
	}
	// The object is there. That a piece could not be removed does not make it another, and is no failure.
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	u.remove(fresh, &u.tail)
	u.remove(fresh, &u.head)
	return nil
}

// remove deletes an object that was made here.
func (u *upload) remove(ctx context.Context, p *piece) error {
	if p.generation == "" && p.key == u.key {
		return nil // it is not known to be ours
	}
	a, err := u.store.try(ctx, u.url, "remove the parts of an upload", request{
		method: http.MethodDelete, url: u.store.address(objectPath(u.bucket, p.key), "generation", p.generation),
	})
	if err == nil && a.status >= 300 && a.status != 404 {
		err = store.Refused(pkg, u.url, "remove the parts of an upload", a.status, a.message)
	}
	return err
}

// Remove deletes the generation that was made.
func (u *upload) Remove(ctx context.Context) error {
	if u.whole.generation == "" {
		return fault.New(fault.Corrupt, pkg, "cannot remove the object: the store has made it without saying which").In(u.url)
	}
	return u.remove(ctx, &u.whole)
}

// Discard ends the session, and removes the pieces that were made: also those whose request was cut off, since nobody else
// has objects of these names.
func (u *upload) Discard(ctx context.Context) error {
	var first error
	if u.session != "" {
		a, err := u.store.try(ctx, u.url, "end an upload", request{method: http.MethodDelete, url: u.session})
		// 499 is the answer for a session that was ended; one that is not there has ended by itself.
		if err == nil && a.status >= 300 && a.status != 499 && a.status != 404 && a.status != 410 {
			err = store.Refused(pkg, u.url, "end an upload", a.status, a.message)
		}
		first = err
	}
	if u.held {
		for _, p := range []*piece{&u.tail, &u.head} {
			if err := u.remove(ctx, p); err != nil && first == nil {
				first = err
			}
		}
	}
	return first
}
