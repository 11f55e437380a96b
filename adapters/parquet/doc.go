// Package parquet writes tables as Apache Parquet files (github.com/parquet-go/parquet-go), without loss.
//
//	tcb                 Parquet
//	i32, enum           INT32
//	i64                 INT64
//	f32, f64            FLOAT, DOUBLE: every bit, those of NaN and the sign of zero too
//	bool                BOOLEAN
//	string              BYTE_ARRAY, STRING
//	uuid                FIXED_LEN_BYTE_ARRAY(16), UUID: bytes in the order of the text
//	datetime            INT64, TIMESTAMP without a zone, of microseconds or nanoseconds; see [Options]
//	timespan            INT64, the ticks of 100 ns: no logical type that readers know holds them
//	T[]                 LIST of "element", in three levels
//	optional            OPTIONAL, and for elements that can be absent an OPTIONAL element
//
// Columns have the names of the schema. The metadata of the file has the schema as JSON under the key [SchemaKey]: it
// says what Parquet has no words for, such as tags, the labels of enumerations, and that a number is a timespan.
//
// The same table and options give the same bytes. Functions are safe for concurrent use.
package parquet
