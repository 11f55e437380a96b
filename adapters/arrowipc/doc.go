// Package arrowipc writes tables as Apache Arrow IPC files (github.com/apache/arrow-go), without loss.
//
//	tcb                 Arrow
//	i32, enum           Int32
//	i64                 Int64
//	f32, f64            Float32, Float64: every bit, those of NaN and the sign of zero too
//	bool                Bool
//	string              Utf8; LargeUtf8 where one row has 2 GiB of text and more
//	uuid                FixedSizeBinary(16) with the extension name arrow.uuid: bytes in the order of the text
//	datetime            Timestamp without a zone, of microseconds or nanoseconds; see [Options]
//	timespan            Duration, of nanoseconds or microseconds; see [Options]
//	T[]                 List of "item"
//	optional            nullable, and for elements that can be absent a nullable item
//
// Columns have the names of the schema. The metadata of the Arrow schema has the schema as JSON under the key
// [SchemaKey]: it says what Arrow has no words for, such as tags and the labels of enumerations.
//
// Columns go into the file without being copied, but for those that have another layout there: text, truth values,
// UUIDs and times. The same table and options give the same bytes. Functions are safe for concurrent use.
package arrowipc
