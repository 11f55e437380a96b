package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const vectorFolder = "../../testdata/msglc"

// vector is the part of a conformance vector (testdata/msglc/README.md) that the command line can show.
type vector struct {
	File      string
	Offset    int64
	Options   struct{ Magic any }
	Value     any
	Reads     []any
	Errors    []any
	OpenError string `json:"open_error"`
}

// TestVectors reads the conformance vectors through the command line. Values are compared as JSON; keys that are not
// strings come as pairs, NaN and the infinities as strings.
func TestVectors(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(vectorFolder, "*.json"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no vectors in %s: %v", vectorFolder, err)
	}
	read, failed := 0, 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var v vector
		if err := decodeOrdered(text, &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v.File == "" {
			continue // too large to be kept; the tests of the library make it
		}
		file := filepath.Join(vectorFolder, v.File)
		t.Run(strings.TrimSuffix(filepath.Base(name), ".json"), func(t *testing.T) {
			flags := []string{"--keys=pairs", "--non-finite=string", "--dup=last", "--offset", strconv.FormatInt(v.Offset, 10)}
			if magic, ok := v.Options.Magic.(object); ok {
				flags = append(flags, "--magic", string(unhex(magic[0].value.(string))))
			}
			if v.OpenError != "" {
				failed++
				wantError(t, append([]string{"cat", file}, flags...), 1)
				wantError(t, append([]string{"get", file, ""}, flags...), 1)
				return
			}
			for _, r := range v.Reads {
				read++
				path, want := pathArgument(r.([]any)[0]), r.([]any)[1]
				if o, ok := want.(object); ok && len(o) == 1 && o[0].key == "$value" {
					want = v.Value
				}
				out, errs, status := command(t, append([]string{"get", file, "--"}, path)...)
				if len(flags) > 0 {
					out, errs, status = command(t, append(append([]string{"get"}, flags...), "--", file, path)...)
				}
				if status != 0 {
					t.Errorf("get %q: status %d: %s", path, status, errs)
					continue
				}
				if err := sameJSON(out, want); err != nil {
					t.Errorf("get %q: %v", path, err)
				}
			}
			for _, r := range v.Errors {
				failed++
				wantError(t, append(append([]string{"get"}, flags...), "--", file, pathArgument(r.([]any)[0])), 1)
			}
			if v.Value != nil {
				out, errs, status := command(t, append([]string{"cat", file}, flags...)...)
				if status != 0 {
					t.Errorf("cat: status %d: %s", status, errs)
				} else if err := sameJSON(out, v.Value); err != nil {
					t.Errorf("cat: %v", err)
				}
			}
			for _, verify := range [][]string{{"verify"}, {"verify", "--deep"}} {
				if len(verify) > 1 && v.File == "stream_duplicate_keys.msg" {
					wantFinding(t, file) // the original lets keys occur twice
					continue
				}
				out, errs, status := command(t, append(append(verify, file), flags[3:]...)...)
				if status != 0 || out != "" {
					t.Errorf("%s: status %d: %s%s", strings.Join(verify, " "), status, out, errs)
				}
			}
		})
	}
	if read < 200 || failed < 50 {
		t.Errorf("%d values and %d errors: the vectors were not found", read, failed)
	}
}

func wantFinding(t *testing.T, file string) {
	t.Helper()
	out, errs, status := command(t, "verify", "--deep", file)
	if status != 1 || !strings.HasPrefix(out, file+": ") || errs != "" {
		t.Errorf("verify --deep: status %d, standard output %q, standard error %q", status, out, errs)
	}
}

// wantError runs a command that must fail, with one line on standard error and nothing on standard output.
func wantError(t *testing.T, args []string, want int) {
	t.Helper()
	out, errs, status := command(t, args...)
	if status != want || out != "" || !strings.HasPrefix(errs, "spile: ") || strings.Count(errs, "\n") != 1 {
		t.Errorf("%q: status %d, standard output %q, standard error %q", args, status, out, errs)
	}
}

// pathArgument gives a path of a vector as an argument: a list of segments becomes a JSON Pointer.
func pathArgument(path any) string {
	if text, ok := path.(string); ok {
		return strings.TrimLeft(text, "/")
	}
	var b strings.Builder
	for _, segment := range path.([]any) {
		text := fmt.Sprint(segment)
		switch s := segment.(type) {
		case string:
			if text = s; text == "" {
				continue
			}
		case nil:
			text = "{null}"
		default:
			text = "{" + text + "}"
			if o, ok := s.(object); ok {
				text = "{" + o[0].value.(string) + "}"
				if o[0].key == "$f64" {
					text = "{" + strconv.FormatFloat(bits(o[0].value), 'g', -1, 64) + "}"
				}
			}
		}
		b.WriteString("/" + strings.ReplaceAll(strings.ReplaceAll(text, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// object is a JSON object with its pairs in order.
type object []pair

type pair struct {
	key   string
	value any
}

// decodeOrdered decodes a vector; objects inside its values keep their order.
func decodeOrdered(text []byte, v *vector) error {
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	get := func(name string) any {
		if fields[name] == nil {
			return nil
		}
		tree, err := parseJSON(string(fields[name]))
		if err != nil {
			panic(err)
		}
		return tree
	}
	v.File, _ = get("file").(string)
	v.OpenError, _ = get("open_error").(string)
	if n, ok := get("offset").(json.Number); ok {
		v.Offset, _ = n.Int64()
	}
	if o, ok := get("options").(object); ok {
		for _, p := range o {
			if p.key == "magic" {
				v.Options.Magic = p.value
			}
		}
	}
	v.Value = get("value")
	v.Reads, _ = get("reads").([]any)
	v.Errors, _ = get("errors").([]any)
	return nil
}

// parseJSON parses JSON text that must be one value.
func parseJSON(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := parseNext(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one value")
	}
	return v, nil
}

func parseNext(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			item, err := parseNext(d)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err := d.Token()
		return list, err
	case json.Delim('{'):
		o := object{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			value, err := parseNext(d)
			if err != nil {
				return nil, err
			}
			o = append(o, pair{key.(string), value})
		}
		_, err := d.Token()
		return o, err
	}
	return token, nil
}

// sameJSON compares printed JSON with the typed JSON of a vector.
func sameJSON(text string, typed any) error {
	if !strings.HasSuffix(text, "\n") || strings.Count(text, "\n") != 1 {
		return fmt.Errorf("not one line: %.100q", text)
	}
	got, err := parseJSON(text)
	if err != nil {
		return fmt.Errorf("%w in %.100q", err, text)
	}
	return same(got, typed, "")
}

func same(got, typed any, where string) error {
	differ := func(want any) error { return fmt.Errorf("at %q: got %.100v, want %.100v", where, got, want) }
	switch want := typed.(type) {
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return differ(fmt.Sprintf("list of %d", len(want)))
		}
		for i := range want {
			if err := same(list[i], want[i], fmt.Sprintf("%s/%d", where, i)); err != nil {
				return err
			}
		}
		return nil
	case object:
		return sameTyped(got, want, where, differ)
	}
	if got != typed {
		return differ(typed)
	}
	return nil
}

func sameTyped(got any, typed object, where string, differ func(any) error) error {
	if len(typed) != 1 {
		return differ(typed)
	}
	content := typed[0].value
	part := func(i int) any { return content.([]any)[i] }
	switch typed[0].key {
	case "$int":
		if n, ok := got.(json.Number); !ok || n.String() != content {
			return differ(content)
		}
	case "$f64":
		return sameFloat(got, bits(content), differ)
	case "$bin":
		b, _ := hex.DecodeString(content.(string))
		if got != base64.RawURLEncoding.EncodeToString(b) {
			return differ(content)
		}
	case "$time":
		at := time.Unix(integer(part(0)), integer(part(1))).UTC()
		if got != at.Format("2006-01-02T15:04:05.000000000Z") {
			return differ(at)
		}
	case "$ext":
		b, _ := hex.DecodeString(part(1).(string))
		return same(got, object{{"$raw", object{
			{"$ext", part(0)}, {"$data", base64.RawURLEncoding.EncodeToString(b)},
		}}}, where)
	case "$raw":
		if fmt.Sprint(got) != fmt.Sprint(content) {
			return differ(content)
		}
	case "$tag":
		return same(got, part(1), where)
	case "$undefined":
		if got != nil {
			return differ(nil)
		}
	case "$map":
		return sameMap(got, content.([]any), where, differ)
	default:
		expanded, err := expand(typed)
		if err != nil {
			return err
		}
		return same(got, expanded, where)
	}
	return nil
}

func sameMap(got any, pairs []any, where string, differ func(any) error) error {
	strs := true
	for _, p := range pairs {
		if _, ok := p.([]any)[0].(string); !ok {
			strs = false
		}
	}
	if !strs {
		return same(got, pairs, where)
	}
	o, ok := got.(object)
	if !ok || len(o) != len(pairs) {
		return differ(fmt.Sprintf("map of %d", len(pairs)))
	}
	for i, p := range pairs {
		if key := p.([]any)[0]; o[i].key != key {
			return differ(key)
		}
		if err := same(o[i].value, p.([]any)[1], where+"/"+o[i].key); err != nil {
			return err
		}
	}
	return nil
}

// sameFloat compares a printed float with the bits of a vector; what was a 32-bit float is printed as the shortest one.
func sameFloat(got any, want float64, differ func(any) error) error {
	special := map[string]bool{"NaN": math.IsNaN(want), "Infinity": math.IsInf(want, 1), "-Infinity": math.IsInf(want, -1)}
	if text, ok := got.(string); ok {
		if !special[text] {
			return differ(want)
		}
		return nil
	}
	n, ok := got.(json.Number)
	if !ok || !strings.ContainsAny(n.String(), ".e") {
		return differ(want)
	}
	f, err := n.Float64()
	if err != nil || math.Float64bits(f) != math.Float64bits(want) &&
		math.Float64bits(float64(float32(f))) != math.Float64bits(want) {
		return differ(want)
	}
	return nil
}

func bits(text any) float64 {
	n, err := strconv.ParseUint(text.(string), 16, 64)
	if err != nil {
		panic(err)
	}
	return math.Float64frombits(n)
}

func integer(v any) int64 {
	text := fmt.Sprint(v)
	if o, ok := v.(object); ok {
		text = o[0].value.(string)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		panic(err)
	}
	return n
}

// expand makes the value of a recipe.
func expand(recipe object) (any, error) {
	args, _ := recipe[0].value.([]any)
	number := func(i int) int64 { return integer(args[i]) }
	var list []any
	switch recipe[0].key {
	case "$range":
		for i := number(0); (number(2) > 0) == (i < number(1)) && i != number(1); i += number(2) {
			if i >= 1<<53 || i <= -1<<53 {
				list = append(list, object{{"$int", strconv.FormatInt(i, 10)}})
				continue
			}
			list = append(list, json.Number(strconv.FormatInt(i, 10)))
		}
		return list, nil
	case "$frange":
		for i := number(0); (number(2) > 0) == (i < number(1)) && i != number(1); i += number(2) {
			list = append(list, object{{"$f64", fmt.Sprintf("%016x", math.Float64bits(float64(i)))}})
		}
		return list, nil
	case "$repeat":
		for range number(1) {
			list = append(list, args[0])
		}
		return list, nil
	case "$cycle":
		items := args[0].([]any)
		for i := range number(1) {
			list = append(list, items[i%int64(len(items))])
		}
		return list, nil
	case "$rstr":
		return strings.Repeat(args[0].(string), int(number(1))), nil
	case "$rbin":
		return object{{"$bin", strings.Repeat(args[0].(string), int(number(1)))}}, nil
	case "$kvrange", "$kvconst":
		for i := number(1); i < number(2); i++ {
			value := any(json.Number(strconv.FormatInt(i, 10)))
			if recipe[0].key == "$kvconst" {
				value = args[3]
			}
			list = append(list, []any{fmt.Sprint(args[0], i), value})
		}
		return object{{"$map", list}}, nil
	}
	return nil, fmt.Errorf("unknown form %v", recipe)
}
