//go:build ignore

// Generate writes tables.pb.go: what protoc with protoc-gen-go makes of the messages below. Their fields are those of
// the Go structs in table_rows.go, in their order.
package main

import (
	"log"
	"os"
	"strings"

	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// messages are fields as "name type"; integers that can be negative are none, so that int32 is the shortest.
var messages = []struct{ name, fields string }{
	{"Growth", "id int32, hero int32, level int32, hp int32, attack int32, defense int32, speed int32, crit float, cost int64"},
	{"Item", "id int32, key string, name string, kind int32, rarity int32, price int64, weight float, stack int32, tradeable bool, tags string*, icon string, set string?"},
	{"Skill", "id int32, key string, hero int32, cooldown float, costs int32*, factors double*, passive bool, text string"},
	{"Drop", "id int32, group int32, item int32, least int32, most int32, chance double"},
	{"Quest", "id int32, key string, title string, start int64, end int64, next int32?, reward int32, daily bool"},
	{"Sale", "id int32, time int64, player int64, item string, amount int32, price double, rating float, weight double, refunded bool"},
}

var types = map[string]descriptorpb.FieldDescriptorProto_Type{
	"int32": descriptorpb.FieldDescriptorProto_TYPE_INT32, "int64": descriptorpb.FieldDescriptorProto_TYPE_INT64,
	"float": descriptorpb.FieldDescriptorProto_TYPE_FLOAT, "double": descriptorpb.FieldDescriptorProto_TYPE_DOUBLE,
	"bool": descriptorpb.FieldDescriptorProto_TYPE_BOOL, "string": descriptorpb.FieldDescriptorProto_TYPE_STRING,
}

func main() {
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("tables.proto"), Package: proto.String("spile.bench"), Syntax: proto.String("proto3"),
		Options: &descriptorpb.FileOptions{GoPackage: proto.String("github.com/spilehq/spile/bench/tablepb")},
	}
	for _, m := range messages {
		row := &descriptorpb.DescriptorProto{Name: proto.String(m.name)}
		for i, text := range strings.Split(m.fields, ", ") {
			name, typ, _ := strings.Cut(text, " ")
			f := &descriptorpb.FieldDescriptorProto{
				Name: proto.String(name), Number: proto.Int32(int32(i + 1)), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
			}
			if base, ok := strings.CutSuffix(typ, "*"); ok {
				typ, f.Label = base, descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
			}
			if base, ok := strings.CutSuffix(typ, "?"); ok {
				typ, f.Proto3Optional, f.OneofIndex = base, proto.Bool(true), proto.Int32(int32(len(row.OneofDecl)))
				row.OneofDecl = append(row.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String("_" + name)})
			}
			f.Type = types[typ].Enum()
			row.Field = append(row.Field, f)
		}
		table := &descriptorpb.DescriptorProto{Name: proto.String(m.name + "Table"), Field: []*descriptorpb.FieldDescriptorProto{{
			Name: proto.String("rows"), Number: proto.Int32(1), Label: descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum(),
			Type: descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), TypeName: proto.String(".spile.bench." + m.name),
		}}}
		file.MessageType = append(file.MessageType, row, table)
	}
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{"tables.proto"}, ProtoFile: []*descriptorpb.FileDescriptorProto{file},
	})
	if err != nil {
		log.Fatal(err)
	}
	internal_gengo.GenerateFile(plugin, plugin.Files[0])
	out := plugin.Response()
	if out.Error != nil {
		log.Fatal(*out.Error)
	}
	if err := os.WriteFile("tables.pb.go", []byte(out.File[0].GetContent()), 0o666); err != nil {
		log.Fatal(err)
	}
}
