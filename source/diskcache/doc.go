// Package diskcache keeps what was read of remote objects in a folder, so that the next run does not ask for it again.
//
// An object is cut into blocks of [BlockSize] bytes. A block is a file of its own:
//
//	DIR/CACHEDIR.TAG                     says what the folder is: a cache
//	DIR/KEY/current                      the size and version that the object had when it was last opened
//	DIR/KEY/missing                      says that there was no object, and beside which version of another
//	DIR/KEY/VERSION/NUMBER.directory     a block that was read as a directory (source.ForDirectory)
//	DIR/KEY/VERSION/NUMBER.payload       another block
//
// KEY and VERSION are hashes of the URL and of the version, so neither a URL with a secret in it nor a name stands in the folder,
// and bytes of another version are never found. A block file ends with the XXH64 of its number and its bytes; one that is
// damaged is read from the source again. Files appear by a rename, so that any number of processes can use one folder; what two
// of them fetch at the same time is fetched twice, and stored once.
//
// The blocks of a folder take at most as many bytes as [Open] was told, approximately: what was not used for the longest time
// goes first, payload before directories; a block that was read as both is one of a directory. Only files of the names above
// are ever removed.
//
// A Cache and its objects are safe for concurrent use.
package diskcache
