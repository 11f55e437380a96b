package azure

import (
	"bytes"
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/spilehq/spile/adapters/internal/store"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source/remote"
)

// Create returns a writer for a blob. With [remote.WriteOptions.NoOverwrite] it asks first whether there is one, and the store
// is told not to replace one that comes later.
func (s *Store) Create(ctx context.Context, url string, o *remote.WriteOptions) (*remote.Writer, error) {
	at, err := s.parseBlob(url)
	if err != nil {
		return nil, err
	}
	u := &upload{store: s, blobURL: at, client: at.account.again.NewContainerClient(at.box).NewBlockBlobClient(at.key)}
	rand.Read(u.nonce[:])
	if o != nil && o.NoOverwrite {
		any := azcore.ETagAny
		u.condition = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: &any}}
		// The answer does not matter but when it is that there is a blob: who may write need not be allowed to ask.
		if _, err := u.client.GetProperties(ctx, nil); err == nil {
			return nil, store.Exists(pkg, url)
		}
	}
	return remote.NewWriter(ctx, u, o)
}

// upload is blocks that are still to be committed.
type upload struct {
	store *Store
	blobURL
	client    *blockblob.Client
	condition *blob.AccessConditions // of the request that makes the blob
	nonce     [12]byte               // tells the blocks from those of other writers
	sum       atomic.Int64           // bytes of the blocks
	made      *azcore.ETag           // of what Put or Complete has made
}

func (u *upload) Name() string { return u.url }

// Limits: blocks may have 4,000 MiB, those that are copied 100 MiB in every version of the interface. A shorter copy than
// 1 MiB is as soon sent.
func (u *upload) Limits() remote.UploadLimits {
	return remote.UploadLimits{MaxPart: 4000 << 20, MinCopy: 1 << 20, MaxCopy: 100 << 20, MaxParts: 50000}
}

// block is the name of a block. All of a blob have the same length.
func (u *upload) block(number int) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(u.nonce[:len(u.nonce):len(u.nonce)], uint32(number)))
}

// checksum is what the store compares the bytes with that arrive.
func checksum(p []byte) blob.TransferValidationType {
	sum := md5.Sum(p)
	return blob.TransferValidationTypeMD5(sum[:])
}

// committed is the error of a request that makes the blob.
func (u *upload) committed(doing string, err error) error {
	var r *azcore.ResponseError
	if errors.As(err, &r) && u.condition != nil && (r.StatusCode == 412 || r.ErrorCode == "BlobAlreadyExists") {
		return store.Exists(pkg, u.url)
	}
	return u.failed(doing, err)
}

func (u *upload) Put(ctx context.Context, p []byte) error {
	ctx, rec := store.Keep(ctx)
	resp, err := u.client.Upload(ctx, streaming.NopCloser(bytes.NewReader(p)), &blockblob.UploadOptions{
		AccessConditions: u.condition, TransactionalValidation: checksum(p),
	})
	if err != nil && rec.Lost { // the store may have made the blob before its answer was lost
		sum := md5.Sum(p)
		if is, bad := u.client.GetProperties(ctx, nil); bad == nil && bytes.Equal(is.ContentMD5, sum[:]) {
			u.made = is.ETag
			return nil
		}
	}
	if err != nil {
		return u.committed("write the blob", err)
	}
	u.made = resp.ETag
	return nil
}

// Begin has nothing to do: the first block begins the blob.
func (u *upload) Begin(context.Context) error { return nil }

func (u *upload) Part(ctx context.Context, p remote.Part) error {
	_, err := u.client.StageBlock(ctx, u.block(p.Number), streaming.NopCloser(bytes.NewReader(p.Bytes)), &blockblob.StageBlockOptions{
		TransactionalValidation: checksum(p.Bytes),
	})
	if err != nil {
		return u.failed("send a part", err)
	}
	u.sum.Add(int64(len(p.Bytes)))
	return nil
}

// CopyPart has the store read a blob of the same account. It reads with a signature or a token that is sent along.
func (u *upload) CopyPart(ctx context.Context, p remote.CopiedPart) error {
	from, err := u.store.parseBlob(p.From)
	if err != nil || from.account != u.account {
		return errors.ErrUnsupported
	}
	client := from.account.once.NewContainerClient(from.box).NewBlobClient(from.key)
	address := client.URL() // with the signature, where the environment has one
	o := &blockblob.StageBlockFromURLOptions{
		Range:                          blob.HTTPRange{Offset: p.Start, Count: p.Len},
		SourceModifiedAccessConditions: &blob.SourceModifiedAccessConditions{SourceIfMatch: (*azcore.ETag)(&p.Version)},
	}
	if signed, err := client.GetSASURL(sas.BlobPermissions{Read: true}, time.Now().Add(time.Hour), nil); err == nil { // there is a key
		address = signed
	} else if t := from.account.token; t != nil {
		token, err := t.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{"https://storage.azure.com/.default"}})
		if err != nil {
			return u.failed("copy a part of "+p.From, err)
		}
		bearer := "Bearer " + token.Token
		o.CopySourceAuthorization = &bearer
	}
	_, err = u.client.StageBlockFromURL(store.Working(ctx, p.Len), u.block(p.Number), address, o)
	var r *azcore.ResponseError
	switch {
	case err == nil:
		u.sum.Add(p.Len)
		return nil
	case errors.As(err, &r) && r.StatusCode == 412:
		return fault.New(fault.Changed, pkg, "is no longer the version that was opened, %s", p.Version).In(p.From)
	case errors.As(err, &r) && (r.StatusCode == 501 || r.StatusCode == 403 || r.StatusCode == 401 || r.ErrorCode == "CannotVerifyCopySource"):
		// A store without this request, or credentials that let the blob be read and not be copied from.
		return errors.ErrUnsupported
	}
	return u.failed("copy a part of "+p.From, err)
}

func (u *upload) Complete(ctx context.Context, parts int) error {
	blocks := make([]string, parts)
	for i := range blocks {
		blocks[i] = u.block(i)
	}
	ctx, rec := store.Keep(store.Working(ctx, u.sum.Load()))
	resp, err := u.client.CommitBlockList(ctx, blocks, &blockblob.CommitBlockListOptions{AccessConditions: u.condition})
	if err != nil && rec.Lost {
		// As above. Nobody else has blocks of these names.
		is, bad := u.client.GetBlockList(ctx, blockblob.BlockListTypeCommitted, nil)
		if bad == nil && slices.EqualFunc(is.CommittedBlocks, blocks, func(b *blockblob.Block, name string) bool { return b.Name != nil && *b.Name == name }) {
			u.made = is.ETag
			return nil
		}
	}
	if err != nil {
		return u.committed("complete the upload", err)
	}
	u.made = resp.ETag
	return nil
}

// leaseSeconds is the shortest lease that there is.
const leaseSeconds = 15

// Discard removes the blocks when they are all there is: then deleting the blob does it. Whether there is a blob is asked under
// a lease, which keeps others from making one after that, which would be deleted. The list of blocks would not do: a blob that
// was put whole has none. Blocks beside a blob stay, and are dropped after a week.
func (u *upload) Discard(ctx context.Context) error {
	const doing = "remove the parts of an upload"
	held, err := lease.NewBlobClient(u.client, nil)
	if err != nil {
		return u.failed(doing, err)
	}
	if _, err := held.AcquireLease(ctx, leaseSeconds, nil); err != nil {
		if notOurs(err) { // no block has arrived, or somebody else writes
			return nil
		}
		return u.failed(doing, err)
	}
	with := &blob.AccessConditions{LeaseAccessConditions: &blob.LeaseAccessConditions{LeaseID: held.LeaseID()}}
	_, err = u.client.GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: with})
	var r *azcore.ResponseError
	if errors.As(err, &r) && r.StatusCode == 404 {
		if _, err = u.client.Delete(ctx, &blob.DeleteOptions{AccessConditions: with}); err == nil {
			return nil // and the lease with it
		}
	}
	if _, end := held.ReleaseLease(ctx, nil); err == nil && end != nil && !notOurs(end) {
		err = end
	}
	if err != nil {
		return u.failed(doing, err)
	}
	return nil
}

// Remove deletes the blob with the ETag that was made.
func (u *upload) Remove(ctx context.Context) error {
	if u.made == nil {
		return fault.New(fault.Corrupt, pkg, "cannot remove the blob: the store has made it without saying which").In(u.url)
	}
	_, err := u.client.Delete(ctx, &blob.DeleteOptions{AccessConditions: &blob.AccessConditions{
		ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: u.made},
	}})
	var r *azcore.ResponseError
	if err != nil && !(errors.As(err, &r) && (r.StatusCode == 404 || r.StatusCode == 412)) {
		return u.failed("remove the blob", err)
	}
	return nil
}

// notOurs reports whether an answer says that there is no blob, or that somebody else holds it.
func notOurs(err error) bool {
	var r *azcore.ResponseError
	return errors.As(err, &r) && (r.StatusCode == 404 || r.StatusCode == 409 || r.StatusCode == 412)
}
