// Package remote makes objects of byte ranges that a store answers over a network. It knows nothing of the store's protocol:
// a [Getter] sends one request; [Open] pins the version, judges every answer, and retries.
//
// Opening an object is one request, for its first bytes: the answer says the size and the version, and the bytes stay in
// memory, where the reads that open a file of any format find them. What is read later is one request each, or several at
// once where it is long.
//
// Every request after the first one names the version that the first answer had, and every answer is held against it: a
// store that has another object by then is [fault.Changed], and no byte of an answer is used before it is judged. A store
// that gives no version is held to the size alone, which does not find an object that was replaced by one of equal size.
// An ETag that is weak (W/"…") is no condition that a store may compare ranges by (RFC 9110, 13.1.1); it is compared
// with that of each answer instead.
//
// Requests that break, are cut short, take too long, or are answered by 408, 429 or 5xx are sent again, after a pause that
// doubles and is random below that, or that the store asks for. What had come by then is kept.
//
// Objects are safe for concurrent use.
package remote
