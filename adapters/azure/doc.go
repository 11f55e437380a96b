// Package azure reads and writes blobs of Azure Storage.
//
// A [Store] is a set of credentials and an account, and holds the connections. It gives a [remote.Getter] for a blob, a
// [remote.Writer] for a new one, and lists. It is safe for concurrent use.
//
// # URLs
//
//	azblob://container/blob
//	azblob://ACCOUNT.blob.core.windows.net/container/blob
//
// In the first form the environment names the account. The name of the blob stands in the URL as it is: nothing is decoded,
// and characters such as % ? + # need no escape.
//
// # Versions
//
// The version of a blob is its ETag: later reads ask for it (If-Match), and the store answers 412 when the blob is another
// one by then.
//
// # Credentials
//
// They are never an argument, and no error shows them. They come from the first of these that is there:
//
//	AZURE_STORAGE_CONNECTION_STRING                  account, endpoint, and a key or a signature
//	AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_KEY         a key
//	AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_SAS_TOKEN   a signature
//	AZURE_STORAGE_ACCOUNT                            the default credential of Azure: environment, workload, machine, az login
//
// AZURE_NO_SIGN_REQUEST=YES sends requests without. AZURE_STORAGE_SERVICE_ENDPOINT is the URL of the account where it is not
// https://ACCOUNT.blob.core.windows.net, that of Azurite for one. Key and signature go to that account and no other; a URL
// that names another account of Azure is read with the default credential, and a host that is not Azure's is refused.
// Redirects are not followed.
//
// # Writing
//
// Blocks that were sent and not committed cannot be read. When an upload is aborted they are removed if there is no blob
// under the name; where there is one they cannot be, and the store drops them after a week.
//
// # Suffixes
//
// The store gives no range from the end of a blob: a request for one is an error that wraps [errors.ErrUnsupported].
package azure
