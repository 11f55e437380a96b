package s3

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/s3utils"
	"gopkg.in/ini.v1"

	"github.com/spilehq/spile/adapters/internal/store"
	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source/remote"
)

const pkg = "s3"

// Options say which store is meant. Nil and the zero value take everything from the environment, as the package says.
type Options struct {
	// Endpoint is the URL of a store other than Amazon's.
	Endpoint string
	Region   string
	// Profile names the section of the shared files.
	Profile string
	// Anonymous sends requests that are not signed.
	Anonymous bool
	// RequesterPays says that the owner of the credentials pays for reading and listing, where a bucket asks for that.
	RequesterPays bool
	// Transport sends the requests to the store, but not those for credentials. By default it is one of the Store's own.
	Transport http.RoundTripper
	// Requests limits and counts the requests of lists and writers. Those of reads are the matter of who opens the object.
	Requests remote.Requests
}

// Store is a set of credentials and an endpoint.
type Store struct {
	once     *minio.Core // sends a request once
	again    *minio.Core // sends a request again that failed in passing
	region   string
	unsigned bool
	payer    bool
	tries    int // of a request of a writer or of a list: with pauses that double from 0.2 s to at most 1 s (both are the client's)
	idle     interface{ CloseIdleConnections() }
}

// New returns a Store. It asks for credentials, which may take a request to the machine that the program runs on.
func New(ctx context.Context, o *Options) (*Store, error) {
	if o == nil {
		o = &Options{}
	}
	endpoint, err := parseEndpoint(cmp.Or(o.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL")))
	if err != nil {
		return nil, err
	}
	profile := cmp.Or(o.Profile, os.Getenv("AWS_PROFILE"))
	s := &Store{
		region: cmp.Or(o.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"), profileRegion(cmp.Or(profile, "default")), "us-east-1"),
		payer:  o.RequesterPays || strings.EqualFold(os.Getenv("AWS_REQUEST_PAYER"), "requester"),
		tries:  store.Tries(&o.Requests),
	}
	creds, err := chain(ctx, profile, o.Anonymous || store.Yes(os.Getenv("AWS_NO_SIGN_REQUEST")))
	if err != nil {
		return nil, err
	}
	value, err := creds.GetWithContext(credentialsContext(ctx))
	if err != nil {
		return nil, fault.New(nil, pkg, "no credentials could be had").Because(store.Cause(pkg, "", err))
	}
	s.unsigned = value.SignerType.IsAnonymous()
	transport := o.Transport
	if transport == nil {
		own, err := minio.DefaultTransport(endpoint.Scheme == "https")
		if err != nil {
			return nil, fault.New(nil, pkg, "no connections can be made").Because(err)
		}
		own.ResponseHeaderTimeout = 0 // requests have limits of their own
		transport, s.idle = own, own
	}
	options := minio.Options{
		Creds: creds, Secure: endpoint.Scheme == "https", Region: s.region,
		Transport: &store.Recorder{Base: transport}, BucketLookup: minio.BucketLookupAuto, MaxRetries: 1,
	}
	if endpoint.Host != amazon {
		options.BucketLookup = minio.BucketLookupPath
	}
	if s.once, err = minio.NewCore(endpoint.Host, &options); err == nil {
		options.MaxRetries, options.Transport = s.tries, &store.Recorder{Base: store.Limit(transport, &o.Requests)}
		s.again, err = minio.NewCore(endpoint.Host, &options)
	}
	if err != nil {
		return nil, fault.New(fault.Invalid, pkg, "endpoint %s", endpoint.Host).Because(err)
	}
	return s, nil
}

// Close closes the connections that nobody uses. A transport of the options is left alone.
func (s *Store) Close() {
	if s.idle != nil {
		s.idle.CloseIdleConnections()
	}
}

const amazon = "s3.amazonaws.com"

func parseEndpoint(text string) (*url.URL, error) {
	if text == "" {
		return &url.URL{Scheme: "https", Host: amazon}, nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fault.New(fault.Invalid, pkg, "the endpoint is no URL of the form https://host")
	case u.User != nil || u.RawQuery != "":
		return nil, fault.New(fault.Invalid, pkg, "the URL of the endpoint must not hold credentials")
	case strings.Trim(u.Path, "/") != "":
		return nil, fault.New(fault.Invalid, pkg, "the URL of the endpoint has a path, %s", u.Path)
	}
	return u, nil
}

// profileRegion is the region that the configuration file has for a profile, "" when there is none.
func profileRegion(profile string) string {
	path := os.Getenv("AWS_CONFIG_FILE")
	if path == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return ""
		}
		path = filepath.Join(home, ".aws", "config")
	}
	file, err := ini.Load(path)
	if err != nil {
		return "" // that it cannot be read is told by who looks for credentials there
	}
	for _, section := range []string{"profile " + profile, profile} {
		if s, err := file.GetSection(section); err == nil {
			return s.Key("region").String()
		}
	}
	return ""
}

// versionMark is what the version stands behind in a URL. A version of no characters is the current one.
const versionMark = "?versionId="

var errCircle = errors.New("the list goes in a circle")

// object is what a URL names.
type object struct{ url, bucket, key, version string }

func parse(url string) (object, error) {
	bucket, key, err := store.Split(pkg, "s3", url)
	if err != nil {
		return object{}, err
	}
	if err := s3utils.CheckValidBucketName(bucket); err != nil {
		return object{}, fault.New(fault.Invalid, pkg, "bucket %q", bucket).In(url).Because(err)
	}
	o := object{url: url, bucket: bucket, key: key}
	if i := strings.LastIndex(key, versionMark); i >= 0 {
		o.key, o.version = key[:i], key[i+len(versionMark):]
	}
	return o, nil
}

// parseObject is parse for a URL that names an object.
func parseObject(url string) (object, error) {
	o, err := parse(url)
	if err == nil {
		if bad := s3utils.CheckValidObjectName(o.key); bad != nil {
			err = fault.New(fault.Invalid, pkg, "the URL names no object").In(url).Because(bad)
		}
	}
	return o, err
}

// List gives the objects whose URL begins with the prefix, s3://bucket/ for all, ordered by key. It ends after an error.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[remote.Entry, error] {
	return func(yield func(remote.Entry, error) bool) {
		at, err := parse(prefix)
		if err == nil && at.version != "" {
			err = fault.New(fault.Invalid, pkg, "a prefix has no version").In(prefix)
		}
		if err != nil {
			yield(remote.Entry{}, err)
			return
		}
		owner := false
		o := minio.ListObjectsOptions{Prefix: at.key, Recursive: true, FetchOwner: &owner}
		if s.payer {
			o.Set(payerHeader, "requester")
		}
		var restarts store.Circle
		for broken := 0; ; {
			var failed error
			var circle store.Circle
			pages, stop := store.Budgeted(ctx)
			pages = store.Answered(pages, func(u *url.URL) {
				if circle.Closed(u.Query().Get("continuation-token")) {
					stop(errCircle)
				}
			})
			for info := range s.again.ListObjectsIter(pages, at.bucket, o) {
				if failed = info.Err; failed != nil {
					break
				}
				e := remote.Entry{Name: "s3://" + at.bucket + "/" + info.Key, Size: info.Size}
				if strings.Contains(info.Key, versionMark) { // the key goes as far as the last mark
					e.Name += versionMark
				}
				if info.ETag != "" {
					e.Version = `"` + info.ETag + `"` // the client takes the quotes off
				}
				if !yield(e, nil) {
					stop(nil)
					return
				}
				o.StartAfter, broken = info.Key, 0
			}
			switch cause := context.Cause(pages); {
			case cause == errCircle:
				yield(remote.Entry{}, store.Circles(pkg, prefix))
				return
			case errors.Is(cause, fault.Limit):
				yield(remote.Entry{}, fault.Locate(cause, prefix, "", 0))
				return
			}
			stop(nil)
			// The client sends a request again that got no answer, and not one whose answer breaks off. The list goes on behind
			// what has come.
			if failed == nil {
				return
			}
			if broken == 0 && restarts.Closed(o.StartAfter) { // something came, and what has come before
				yield(remote.Entry{}, store.Circles(pkg, prefix))
				return
			}
			if broken++; broken == s.tries || !store.BreaksOff(failed) || ctx.Err() != nil {
				yield(remote.Entry{}, s.failed(prefix, "list", failed))
				return
			}
		}
	}
}

const payerHeader = "x-amz-request-payer"

// failed is the error of a request of the client.
func (s *Store) failed(name, doing string, err error) error {
	var r minio.ErrorResponse
	if !errors.As(err, &r) || r.StatusCode == 0 {
		return store.Failed(pkg, name, doing, err)
	}
	return store.Refused(pkg, name, doing, r.StatusCode, s.explained(r.StatusCode, r.Code+": "+r.Message, r.Region))
}

// explained adds to the message of a failure what the store does not say.
func (s *Store) explained(status int, message, region string) string {
	switch {
	case region != "" && region != s.region && (status == 301 || status == 307 || status == 400 || status == 403):
		message = store.Join(message, "the bucket is in the region "+region+", and AWS_REGION is "+s.region)
	case s.unsigned && (status == 401 || status == 403):
		message = store.Join(message, "the request was not signed, since there are no credentials")
	}
	return fault.OneLine(message)
}
