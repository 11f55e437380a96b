// Package s3 reads and writes objects of Amazon S3, and of the many stores that speak its protocol.
//
// A [Store] is a set of credentials and an endpoint, and holds the connections. It gives a [remote.Getter] for an object, a
// [remote.Writer] for a new one, and lists. It is safe for concurrent use.
//
// # URLs
//
//	s3://bucket/key
//	s3://bucket/key?versionId=VERSION
//
// The key stands in the URL as it is: nothing is decoded, and characters such as % # + need no escape. A version is what
// follows the last "?versionId=".
//
// # Versions
//
// Without a version in the URL the version of an object is its ETag: later reads ask for it (If-Match), and a store answers
// 412 when the object is another one by then.
//
// # Credentials
//
// They are never an argument, and no error shows them. They come from the first of these that has some: the environment
// (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), the shared files (~/.aws/credentials and ~/.aws/config, the
// profile of AWS_PROFILE; static keys, SSO, credential_process), a web identity (AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN),
// the container and the machine, unless AWS_EC2_METADATA_DISABLED is true. Where there are none, and with
// AWS_NO_SIGN_REQUEST=YES, requests are not signed. Redirects are not followed, so that nothing signed goes to another host.
//
// # Other variables of the environment
//
//	AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL   another store; its buckets stand in the path of the URL
//	AWS_REGION, AWS_DEFAULT_REGION          the region; also from the profile, else us-east-1
//	AWS_REQUEST_PAYER=requester             the reader pays
package s3
