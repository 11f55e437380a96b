package jq

// programs is the corpus of the property test and of the fuzz target. The documents have the keys a to e, id, runs and
// energy, and lists and maps at every place.
var programs = []string{
	`.`, `.a`, `.a.b`, `.a.b.c`, `."a b"`, `.["a"]`, `.[0]`, `.[-1]`, `.[2]`, `.[99]`, `.[-99]`, `.[1:3]`, `.[-2:]`, `.[:2]`, `.[:-1]`,
	`.[5:2]`, `.[1:][1:]`, `.[1:3][0]`, `.[1:3][-1]`, `.[1:4][1:2][0]`, `.[]`, `.[]?`, `.[][]`, `.[][]?`, `.[]?[]?`, `.a[]`, `.a[]?`, `.a?`, `.a?.b?`,
	`.[0]?`, `.a[0]?`, `.a[1:]?`, `.[].a`, `.[].a?`, `.[]?.a?`, `.[] | .a?`, `.[]? | .b?`, `.[1.5]`, `.[null]?`, `.[:1.5]`, `.[nan]?`,
	`.runs`, `.runs[0].energy`, `.runs[1].energy | add`, `.runs[] | .energy`, `.runs[].energy`, `.runs[1:3][] | select(.id > 1)`,
	`.runs[] | select(.id == 1) | .energy`, `.runs[] | select(.id? == 1)`, `.runs | length`, `.runs | keys`, `.runs | map(.id)`,
	`.runs | map(.id?)`, `[.runs[].id]`, `[.runs[]?.id?]`, `.runs[-1]`, `.runs[:2] | length`, `.runs[1:] | .[0]`, `.runs | first`, `.runs | last`,
	`first(.runs[])`, `first(.runs[]?.energy?)`, `limit(2; .runs[])`, `limit(0; .runs[])`, `limit(-1; .runs[])`, `limit(1; .[]) | .a?`,
	`last(.runs[]?)`, `nth(1; .runs[]?)`, `skip(1; .runs[]?)`, `isempty(.runs[]?)`, `isempty(.a?)`, `[limit(3; .[]?)] | length`,
	`.runs[0], .runs[1]`, `.a, .b`, `(.a, .b) | length?`, `(.a, 1)`, `(.a, "x") | type`, `(.a // .b)`, `.a // "none"`, `.nope // .a`, `[.[]? // 7]`, `first(.[]? // 7)`,
	`.a and .b`, `.a or .b`, `.a | not`, `.a == .b`, `.a != null`, `.a < .b`, `.id + 1`, `.id * 2`, `-.id`, `-(.id)`, `+.id`, `.id / 3`, `.a + .b`, `.energy - .energy`,
	`if .a then .b else .c end`, `if .a then .b end`, `if .a == 1 then 1 elif .b then .c else . end`, `[.[]? | if type == "object" then .id else . end]`,
	`{a, b: .c, "d": .d, (.e | tostring): 1}`, `{a}`, `{"a"}`, `{"a b"}`, `{"\(.id)": .a}`, `{"\(.id)"}`, `{("x", "y"): .a, z: (.b, .c)}`, `{a: .runs[]?.id?}`, `{$x}`, `{$x, y: $x}`,
	`"id \(.id) of \(.a)"`, `@json "x\(.a)y"`, `@base64 "\(.id)"`, `@text`, `@json`, `.a | @json`, `"\(.)"`,
	`try .a.b catch "no"`, `try .a.b`, `try error(.a) catch .`, `try error catch .`, `(.a.b)?`, `(.a | .b)?`, `(.[] | .a)?`, `[.[]?.a?]`, `try (.[] | .a) catch "bad"`, `.a as $v | .b, $v`,
	`. as {a: $p, b: $q} | [$p, $q]`, `. as [$p, $q] | $p`, `. as [$p] ?// $p | [$p]`, `.runs[0] as $r | $r.id`, `.runs as $r | range(2) as $i | $r[$i].id`,
	`range(3) as $i | .runs[$i].id`, `range(3) as $i | .[$i]`, `.[$x]`, `.[$x]?`, `.runs[$i:$j]`, `.runs[$i:]`, `.runs[:$j] | length`, `.runs[$i].id`, `.[$o]?`, `.runs[$f]?`, `.runs[$f:]?`,
	`reduce .runs[]? as $r (0; . + 1)`, `reduce .[]? as $v (.; length)`, `reduce .runs[]?.id? as $v (.id; [., $v])`, `foreach .runs[]? as $r (0; . + 1; [., $r.id?])`, `foreach .[]? as $v (0; . + 1)`,
	`label $out | .[]? | if . == null then break $out else . end`, `label $out | .runs[]? | ., break $out`, `[label $f | .[]? | (., break $f)]`,
	`length`, `keys`, `type`, `has("a")`, `has(0)`, `has(-1)`, `has("a")?`, `has(.a)?`, `.a | has("b")?`, `.[]? | length?`, `[.[]? | type]`, `.[]? | keys?`, `map(type)?`, `map(.)?`, `map(.a?)?`, `[.[]? | has("id")?]`,
	`any`, `all`, `any?`, `any(.[]?; . == 1)`, `all(.[]?; . != null)`, `any(.runs[]?; .id? == 1)`, `all(.runs[]?.id?; . > 0)`, `any(.id?)?`, `all(type == "object")?`, `any(1, 2; . == .)`,
	`..`, `[..]`, `[.. | numbers]`, `.a | ..`, `[.. | .id?]`, `recurse`, `[recurse(.[]?; . != null)]`, `to_entries?`, `with_entries(.)?`, `paths`, `[paths]`, `[paths(type == "number")]`, `path(.a)`, `[path(.[]?)]`, `path(first(.a,.b)?)`,
	`.a = 1`, `.a |= 1`, `.a += 1`, `.runs[0].id |= 7`, `.a //= 5`, `del(.a)`, `del(.[0])?`, `del(.runs[1:]?)`, `to_entries? | length`, `map_values(.)?`, `getpath(["a", "b"])?`, `pick(.a)?`, `[splits("a")?]`, `tojson`, `tojson | fromjson`, `tostring`, `walk(.)`, `tostream`,
	`def f: .a; f`, `def f: .a; .b | f?`, `def f(g): g | g; f(.a?)`, `def f($p): $p; f(.a)`, `def select(f): 1; .[]? | select(.a?)`, `def length: 7; length`, `def map(f): 3; map(.a)`, `def first(f): 4; first(.[])`, `def any(f; g): 5; any(.a?)`, `def any(f; g): 5; any`, `def f: def g: .a; g; f`, `.a | def f: .b?; f`, `(def f: .a; f), .b`,
	`.a | .b? | .c?`, `.a.b.c?`, `.a."b"`, `.a["b"]`, `.a.["b"]`, `.[.a]?`, `.runs[.id]?`, `.a[.b]?`, `.["a","b"]?`, `.[0,1]?`, `.[0:1,2]?`, `.a.b[.c]?`, `(.a).b`, `(.a | .b).c`, `[.a, .b][0]`, `{a}.a`, `[.[]?][0]`, `{a: .a}["a"]`, `"abc"[1:2]`, `.a as $x | $x[0]?`, `[1,2][.id]?`, `first(.[]?).a?`, `(.a, .b)?`, `.a??`, `.a.b??`, `.a.b??.c`, `.[].a??`, `.a[]??`, `.a.b?.c??.d?`, `(.a.b)??`, `(.a)?.b??`, `.??`, `(.a)??`, `.[]??`, `try (1, .a.b.c.d) catch .`,
	`.. == 1`, `[.[]?] | sort`, `sort?`, `group_by(.id?)?`, `unique?`, `min?`, `add?`, `add(.[]?)?`, `[add(.runs[]?.id?)?]`, `flatten?`, `reverse?`, `contains({})?`, `inside({})?`, `indices(1)?`, `index("a")?`, `ascii_downcase?`, `explode?`, `ltrimstr("a")`, `tonumber?`, `floor?`, `sqrt?`, `values`, `nulls`, `strings`, `objects`, `arrays`, `scalars`, `iterables`, `numbers`, `booleans`, `.[]? | numbers`, `.[]? | values`,
	`empty`, `error`, `error("x")`, `error(null)`, `halt`, `.a, halt, .b`, `halt_error`, `null`, `1`, `"a"`, `[]`, `{}`, `[.]`, `{a: .}`, `[.[]?]`, `1, 2`, `range(3)`, `range(.id)?`, `range(0; .id)?`, `range(0; .id; 2)?`, `env`, `$ENV`, `$x`, `$__loc__`, `now | type`, `builtins`, `infinite`, `nan | isnan`, `[nan]`, `input_filename?`, `$nope`, `nope`, `.a[`, `input`, `limit(2; repeat(1))`, `first(range(10; 0; -1))`, `until(true; .)`, `[while(. == null; 1)]`, `splits("a")?`, `test("a")?`, `ascii?`, `implode?`, `@csv?`, `@sh?`, `limit(1; .a, error)`, `first(.a, error)`, `.a, error, .b`, `[.a, error]`, `(.a, error)?`, `-1`, `-1[0]?`, `-"a"`, `- .a?`, `.a?//1`, `.[-1:]`, `.[-1:][]`, `.[:1][]?`, `.runs[1:2][].id`, `.runs[:1][0].energy[0]`, `.runs[0].energy[1:3] | add`, `[.runs[]?.energy?[]?]`, `.energy[]`, `.energy | add / length`, `[.energy[] | . * 2]`, `.runs[2:][] | .energy | length`,
}
