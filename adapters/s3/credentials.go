package s3

import (
	"context"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/spilehq/spile/adapters/internal/store"
	"github.com/spilehq/spile/fault"
)

// chain returns the credentials of the first provider that has some, or such that nothing is signed. The client has a chain
// of its own, which asks all providers again for every request when none has any, and takes a profile that cannot be
// read for none.
func chain(ctx context.Context, profile string, anonymous bool) (*credentials.Credentials, error) {
	none := credentials.NewStatic("", "", "", credentials.SignatureAnonymous)
	if anonymous {
		return none, nil
	}
	cc := credentialsContext(ctx)
	has := func(c *credentials.Credentials) (bool, error) {
		value, err := c.GetWithContext(cc)
		return err == nil && value.AccessKeyID != "" && value.SecretAccessKey != "", err
	}
	if c := credentials.New(&credentials.EnvAWS{}); first(has(c)) {
		return c, nil
	}
	c := credentials.New(&credentials.FileAWSCredentials{Profile: profile})
	switch ok, err := has(c); {
	case ok:
		return c, nil
	case ctx.Err() != nil:
		return nil, fault.New(nil, pkg, "no credentials could be had").Because(ctx.Err())
	case err != nil && profile != "": // its text may hold a line of the file
		return nil, fault.New(fault.Invalid, pkg, "the profile %q gives no credentials", profile)
	}
	if !machine() {
		return none, nil
	}
	c = credentials.New(&credentials.IAM{})
	if first(has(c)) {
		return c, nil
	}
	if ctx.Err() != nil {
		return nil, fault.New(nil, pkg, "no credentials could be had").Because(ctx.Err())
	}
	if os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "" || os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "" ||
		os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI") != "" {
		return nil, fault.New(nil, pkg, "the web identity or the container, which the environment names, gives no credentials")
	}
	return none, nil
}

func first(ok bool, _ error) bool { return ok }

// machine reports whether the machine, or what the environment names, is asked for credentials.
func machine() bool {
	return !store.Yes(os.Getenv("AWS_EC2_METADATA_DISABLED")) || os.Getenv("AWS_WEB_IDENTITY_TOKEN_FILE") != "" ||
		os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "" || os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI") != ""
}

// credentialsContext has requests for credentials end with ctx. The service that a machine of Amazon has is a hop away, and
// on other machines nothing answers at its address: a second tells the two apart.
func credentialsContext(ctx context.Context) *credentials.CredContext {
	dialer := &net.Dialer{Timeout: 30 * time.Second}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 30 * time.Second,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if host, _, _ := net.SplitHostPort(addr); net.ParseIP(host).IsLinkLocalUnicast() {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Second)
				defer cancel()
			}
			return dialer.DialContext(ctx, network, addr)
		},
	}
	return &credentials.CredContext{Client: &http.Client{Transport: transport}, Context: ctx}
}
