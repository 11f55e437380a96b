// Package remote makes objects of byte ranges that a store answers over a network. It knows nothing of the store's protocol:
// a [Getter] sends one request; Open pins the version, judges every answer, and retries.
package remote
