package s3

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/s3utils"

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
	if at.version != "" {
		return nil, fault.New(fault.Invalid, pkg, "a version cannot be written").In(url)
	}
	u := &upload{store: s, object: at, etags: make(map[int]string)}
	u.options.DisableContentSha256 = true // the client would chunk the body to sign it, and is given the checksum
	if o != nil && o.NoOverwrite {
		u.options.SetMatchETagExcept("*")
		// The answer does not matter but when it is that there is an object: who may write need not be allowed to ask.
		if _, err := s.again.StatObject(ctx, at.bucket, at.key, minio.StatObjectOptions{}); err == nil {
			return nil, store.Exists(pkg, url)
		}
	}
	return remote.NewWriter(ctx, u, o)
}

// upload is a multipart upload.
type upload struct {
	store *Store
	object
	options minio.PutObjectOptions // the condition of Put and Complete
	id      string
	lost    bool             // a request that begins an upload may have succeeded without an answer
	made    minio.UploadInfo // by Put or Complete

	mu    sync.Mutex
	etags map[int]string // of the parts
	sum   int64          // bytes of these
}

func (u *upload) Name() string { return u.url }

// Limits are those of Amazon's store, which others keep to.
func (u *upload) Limits() remote.UploadLimits {
	return remote.UploadLimits{MinPart: 5 << 20, MaxPart: 5 << 30, MaxCopy: 5 << 30, MaxParts: 10000}
}

func (u *upload) failed(doing string, err error) error { return u.store.failed(u.url, doing, err) }

// committed is the error of a request that makes the object.
func (u *upload) committed(doing string, err error) error {
	var r minio.ErrorResponse
	if errors.As(err, &r) && r.StatusCode == 412 {
		return store.Exists(pkg, u.url)
	}
	return u.failed(doing, err)
}

// checksum is what the store compares the bytes with that arrive.
func checksum(p []byte) string {
	sum := sha256.Sum256(p)
	return hex.EncodeToString(sum[:])
}

func (u *upload) Put(ctx context.Context, p []byte) error {
	ctx, rec := store.Keep(ctx)
	made, err := u.store.again.PutObject(ctx, u.bucket, u.key, bytes.NewReader(p), int64(len(p)), "", checksum(p), u.options)
	if err != nil {
		sum := md5.Sum(p)
		if u.isMade(ctx, rec, err, hex.EncodeToString(sum[:])) {
			return nil
		}
		return u.committed("write the object", err)
	}
	u.made = made
	return nil
}

func (u *upload) Begin(ctx context.Context) (err error) {
	ctx, rec := store.Keep(ctx)
	u.id, err = u.store.again.NewMultipartUpload(ctx, u.bucket, u.key, minio.PutObjectOptions{})
	u.lost = rec.Lost || store.BreaksOff(err)
	if err != nil {
		return u.failed("begin an upload", err)
	}
	return nil
}

func (u *upload) Part(ctx context.Context, p remote.Part) error {
	part, err := u.store.again.PutObjectPart(ctx, u.bucket, u.key, u.id, p.Number+1, bytes.NewReader(p.Bytes), int64(len(p.Bytes)),
		minio.PutObjectPartOptions{Sha256Hex: checksum(p.Bytes), DisableContentSha256: true})
	if err != nil {
		return u.failed("send a part", err)
	}
	return u.sent(p.Number, part.ETag, int64(len(p.Bytes)))
}

func (u *upload) sent(number int, etag string, length int64) error {
	if etag == "" {
		return fault.New(fault.Corrupt, pkg, "the store took part %d without saying so", number+1).In(u.url)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.etags[number] = etag
	u.sum += length
	return nil
}

func (u *upload) CopyPart(ctx context.Context, p remote.CopiedPart) error {
	from, err := parseObject(p.From)
	if err != nil {
		return errors.ErrUnsupported // an object of another kind of store
	}
	headers := make(map[string]string)
	if from.version == "" {
		headers["x-amz-copy-source-if-match"] = p.Version
	} else {
		headers["x-amz-copy-source"] = s3utils.EncodePath(from.bucket+"/"+from.key) + "?versionId=" + from.version
	}
	if u.store.payer {
		headers[payerHeader] = "requester"
	}
	part, err := u.store.again.CopyObjectPart(store.Working(ctx, p.Len), from.bucket, from.key, u.bucket, u.key, u.id, p.Number+1, p.Start, p.Len, headers)
	var r minio.ErrorResponse
	switch {
	case err == nil:
		return u.sent(p.Number, part.ETag, p.Len)
	case errors.As(err, &r) && r.StatusCode == 412:
		return fault.New(fault.Changed, pkg, "is no longer the version that was opened, %s", p.Version).In(p.From)
	case errors.As(err, &r) && (r.StatusCode == 501 || r.StatusCode == 405 || r.StatusCode == 403):
		// A store without this request, or credentials that let the object be read and not be copied from.
		return errors.ErrUnsupported
	}
	return u.store.failed(u.url, "copy a part of "+p.From, err)
}

func (u *upload) Complete(ctx context.Context, parts int) error {
	list := make([]minio.CompletePart, parts)
	for i := range list {
		list[i] = minio.CompletePart{PartNumber: i + 1, ETag: u.etags[i]}
	}
	ctx, rec := store.Keep(store.Working(ctx, u.sum))
	made, err := u.store.again.CompleteMultipartUpload(ctx, u.bucket, u.key, u.id, list, u.options)
	if err != nil {
		if u.isMade(ctx, rec, err, joinedETag(list)) {
			return nil
		}
		return u.committed("complete the upload", err)
	}
	u.made = made
	return nil
}

// isMade reports whether the store has made the object although the request failed: its answer was lost, and a further request
// found the object there or the upload gone. The ETag tells, where it is a checksum of the bytes as it mostly is. Without an
// answer that was lost, the same bytes are those of somebody else.
func (u *upload) isMade(ctx context.Context, rec *store.Record, failed error, etag string) bool {
	if ctx.Err() != nil || !rec.Lost && !store.BreaksOff(failed) {
		return false
	}
	info, err := u.store.again.StatObject(ctx, u.bucket, u.key, minio.StatObjectOptions{})
	if err != nil || info.ETag != etag {
		return false
	}
	u.made = minio.UploadInfo{ETag: info.ETag, VersionID: info.VersionID}
	return true
}

// joinedETag is the ETag that a store gives an object of parts: a checksum of the checksums that are the ETags of these.
func joinedETag(parts []minio.CompletePart) string {
	sum := md5.New()
	for _, p := range parts {
		part, err := hex.DecodeString(p.ETag)
		if err != nil || len(part) != md5.Size { // the store makes other ones
			return ""
		}
		sum.Write(part)
	}
	return fmt.Sprintf("%x-%d", sum.Sum(nil), len(parts))
}

// Discard ends the upload, and the store drops its parts.
func (u *upload) Discard(ctx context.Context) error {
	if u.id != "" {
		if err := u.store.again.AbortMultipartUpload(ctx, u.bucket, u.key, u.id); err != nil && !gone(err) {
			return u.failed("remove the parts of an upload", err)
		}
	}
	if u.lost { // others may write to this name: which of its uploads is ours, nobody can say
		return fault.New(nil, pkg, "an upload without parts may be left, which was begun without an answer that says its name; a rule of the bucket for incomplete uploads removes it").In(u.url)
	}
	return nil
}

// Remove deletes the version that was made, where the bucket keeps versions. Elsewhere the ETag is looked at, and named in the
// request; a store that does not know this condition is asked without it.
func (u *upload) Remove(ctx context.Context) error {
	const doing = "remove the object"
	o := minio.RemoveObjectOptions{VersionID: u.made.VersionID}
	if o.VersionID != "" {
		if err := u.store.again.RemoveObject(ctx, u.bucket, u.key, o); err != nil && !gone(err) {
			return u.failed(doing, err)
		}
		return nil
	}
	info, err := u.store.again.StatObject(ctx, u.bucket, u.key, minio.StatObjectOptions{})
	switch {
	case err != nil && gone(err), err == nil && info.ETag != u.made.ETag:
		return nil
	case err != nil:
		return u.failed(doing, err)
	}
	err = u.store.again.RemoveObject(store.WithHeader(ctx, "If-Match", `"`+u.made.ETag+`"`), u.bucket, u.key, o)
	var r minio.ErrorResponse
	if errors.As(err, &r) && (r.StatusCode == 501 || r.StatusCode == 400) {
		err = u.store.again.RemoveObject(ctx, u.bucket, u.key, o)
	}
	if err != nil && !gone(err) && !(errors.As(err, &r) && r.StatusCode == 412) {
		return u.failed(doing, err)
	}
	return nil
}

// gone reports whether an upload is not there.
func gone(err error) bool {
	var r minio.ErrorResponse
	return errors.As(err, &r) && (r.Code == "NoSuchUpload" || r.StatusCode == 404)
}
