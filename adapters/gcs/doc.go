// Package gcs reads and writes objects of Google Cloud Storage, by requests of its JSON interface.
//
// A [Store] is a set of credentials and an endpoint, and holds the connections. It gives a [remote.Getter] for an object, a
// [remote.Writer] for a new one, and lists. It is safe for concurrent use.
//
// # URLs
//
//	gs://bucket/object
//	gs://bucket/object#GENERATION
//
// The name of the object stands in the URL as it is: nothing is decoded, and characters such as % ? + need no escape. A
// generation is what follows the last # when that is digits.
//
// # Versions
//
// The version of an object is its generation, and later reads ask for that one. When the object was replaced, the store
// answers 404, unless it keeps old generations: then the read goes on in the old one.
//
// # Credentials
//
// They are never an argument, and no error shows them. They are Google's default ones: the file that
// GOOGLE_APPLICATION_CREDENTIALS names, those of gcloud (gcloud auth application-default login), those of the machine. Where
// there are none, and with GS_NO_SIGN_REQUEST=YES, requests are sent without. They are sent to storage.googleapis.com
// alone, and redirects are not followed.
//
// STORAGE_EMULATOR_HOST names another server, which gets no credentials.
//
// # Writing
//
// The store takes the bytes of an object in order. So when the first part is held back ([remote.WriteOptions.Hold]) and there is
// a second one, the parts after the first go to a temporary object NAME.spile-RANDOM.tail, the first to one that ends in .head,
// and the store joins the two (compose) and gives them the name. The temporary objects are deleted then. A bucket with soft
// delete, which is on by default, keeps them for some days, and charges for them.
//
// The store copies no ranges of objects: [remote.Writer.Copy] reads and writes.
package gcs
