package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/source"
	"github.com/spilehq/spile/tcb"
)

// exampleTable begins the examples of verbs that take a table.
const exampleTable = `  echo '{"columns":[{"tag":1,"name":"id","type":"i32"},{"tag":2,"name":"label","type":"string"}]}' > item.schema
  echo '{"id":1,"label":"sword"}' | spile table build --schema item.schema - -o item.tcb`

// newTable is the verb that makes tables and does what only tables have. Its own verbs are beside it.
func newTable(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "table VERB [flags] ARGUMENT...",
		Short: "Make, seal, compare and export tables (tcb)",
		Long: `Table has the verbs for TCB files, the compact tables of game data: one file a table, one block of bytes a column.
info, ls, get, cat, du and verify read them as they read documents.`,
		Example: exampleTable + `
  spile cat --schema item.schema item.tcb`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				switch args[0] {
				case "info", "ls", "get", "cat", "du", "verify":
					return usagef("table has no verb %q: spile %[1]s reads tables as well", args[0])
				}
				return unknownVerb(cmd, args[0])
			}
			return nil
		},
		RunE: func(*cobra.Command, []string) error {
			return usagef("table wants a verb; spile table -h lists them")
		},
	}
	for _, verb := range []func(*env) *cobra.Command{newTableBuild, newTableExport, newTableSchema, newTableDiff, newTableCompat, newTableSeal, newTableOpen, newTableKeygen} {
		sub := verb(e)
		sub.DisableFlagsInUseLine = true
		completeChoices(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

func newTableSchema(e *env) *cobra.Command {
	var in sourceFlags
	pretty := false
	cmd := &cobra.Command{
		Use:   "schema FILE [flags]",
		Short: "Print the schema that a table carries",
		Long: `Schema prints the schema of a table as JSON: tags, types and what can be absent, which is what the file itself says.
With --schema it adds the names, logical types and labels of that schema, and fails where that one does not take what
the file has.`,
		Example:           exampleTable + "\n  spile table schema item.tcb",
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withTable(cmd.Context(), args[0], &in, func(t *table) error {
				if _, err := t.Schema(); err != nil { // of a type that no schema can state
					return err
				}
				if pretty {
					return e.printJSON(t.own, &tableFlags{pretty: true})
				}
				return printSchema(e.out, t.own)
			})
		},
	}
	in.addBytes(cmd.Flags())
	in.addTables(cmd.Flags())
	cmd.Flags().BoolVar(&pretty, "pretty", false, "indent the JSON, a line for each member")
	// A schema is JSON anyhow: the flag is for those who write it at every verb.
	cmd.Flags().Bool("json", true, "print JSON")
	_ = cmd.Flags().MarkHidden("json")
	return cmd
}

// printSchema prints a schema as people write it, a line a column.
func printSchema(w io.Writer, s *tcb.Schema) error {
	var out bytes.Buffer
	columns := s.Columns
	head := *s
	head.Columns = []tcb.Field{}
	text, err := json.Marshal(&head)
	if err != nil {
		return err
	}
	// The members come in the order of the JSON form: what stands in front of the columns, and behind them.
	before, after, _ := bytes.Cut(text, []byte(`"columns":[]`))
	out.Write(before)
	out.WriteString(`"columns":[`)
	for i := range columns {
		one, err := json.Marshal(&tcb.Schema{Columns: columns[i : i+1]})
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n  ")
		out.Write(one[len(`{"columns":[`) : len(one)-len(`]}`)])
	}
	out.WriteString("]")
	out.Write(after)
	out.WriteByte('\n')
	_, err = w.Write(out.Bytes())
	return err
}

// withTable opens a FILE argument that must be a table.
func (e *env) withTable(ctx context.Context, file string, in *sourceFlags, use func(*table) error) error {
	d, err := e.open(ctx, file, in)
	if err != nil {
		return err
	}
	defer d.Close()
	if d.table == nil {
		return fault.New(fault.Invalid, "", "is a %s file, and this verb takes tables (tcb)", d.format).In(d.name)
	}
	return named(use(d.table), d.name)
}

// readTable reads a FILE argument whole, to seal it or to open it.
func (e *env) readTable(ctx context.Context, file string, in *sourceFlags) ([]byte, string, error) {
	obj, err := e.object(ctx, file, in)
	if err != nil {
		return nil, "", err
	}
	defer obj.Close()
	part, err := from(obj, in.offset)
	if err != nil {
		return nil, obj.Name(), named(err, obj.Name())
	}
	head, err := headOf(ctx, part, 0, 4)
	if err == nil && string(head) != "TCB\x00" {
		err = fault.New(fault.Invalid, "", "is no table (tcb); spile table build makes one of JSON Lines, CSV and XLSX").In(obj.Name())
	}
	if err != nil {
		return nil, obj.Name(), err
	}
	p := make([]byte, part.Size())
	return p, obj.Name(), part.ReadAt(ctx, p, 0)
}

func newTableSeal(e *env) *cobra.Command {
	var in sourceFlags
	var keys keyFlags
	output := ""
	cmd := &cobra.Command{
		Use:   "seal FILE -o OUT [flags]",
		Short: "Encrypt a table, or sign it, or both",
		Long: `Seal encrypts a plain table when there is an encryption key, and signs it when there is a MAC key. Keys come from files
or from the environment variables SPILE_KEY and SPILE_MAC_KEY: 64 hexadecimal digits. The two keys have to differ. The
same table and keys give the same bytes.

Give out signed data first, and the MAC key to the clients after that: a client that has the key refuses what is not
signed.`,
		Example: exampleTable + `
  spile table keygen -o item.key && spile table keygen -o item.mac
  spile table seal item.tcb --key-file item.key --mac-key-file item.mac -o item.sealed.tcb`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := keys.keys()
			if err != nil {
				return err
			}
			if len(k.Encryption)+len(k.MAC) == 0 {
				return usagef("no key: --key-file, --mac-key-file, $%s or $%s names one; spile table keygen makes one", keyVariable, macKeyVariable)
			}
			return e.rewriteTable(cmd.Context(), args[0], output, &in, func(p []byte) ([]byte, error) {
				was, err := tcb.ReadProtection(cmd.Context(), source.Memory("", p))
				switch {
				case err == nil && was.Encrypted:
					return nil, fault.New(fault.Conflict, "", "is encrypted already; spile table open makes the plain table of it, which can be sealed anew")
				case err == nil && was.Signed:
					return nil, fault.New(fault.Conflict, "", "is signed already; spile table open makes the plain table of it, which can be sealed anew")
				}
				return tcb.Seal(p, k)
			})
		},
	}
	in.addBytes(cmd.Flags())
	keys.add(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "", "the file to write, `OUT`, - for standard output")
	e.addNoOverwrite(cmd.Flags())
	return cmd
}

func newTableOpen(e *env) *cobra.Command {
	var in sourceFlags
	var keys keyFlags
	output := ""
	cmd := &cobra.Command{
		Use:   "open FILE -o OUT [flags]",
		Short: "Decrypt a table, and check its MAC",
		Long: `Open writes the plain table that a file was sealed from. With a MAC key the file must be signed with it. Without one a
MAC is taken off unchecked, and standard error says so.`,
		Example: exampleTable + `
  spile table keygen -o item.key
  spile table seal item.tcb --key-file item.key -o item.sealed.tcb
  spile table open item.sealed.tcb --key-file item.key -o item.open.tcb`,
		Args:              arguments(1, 1),
		ValidArgsFunction: completeFiles(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := keys.keys()
			if err != nil {
				return err
			}
			return e.rewriteTable(cmd.Context(), args[0], output, &in, func(p []byte) ([]byte, error) {
				out, err := tcb.Unseal(p, &tcb.Options{Keys: k})
				if err == nil && len(k.MAC) == 0 {
					if was, err := tcb.ReadProtection(cmd.Context(), source.Memory("", p)); err == nil && was.Signed {
						e.say("%s: is signed; the MAC was not checked, there is no key for it", args[0])
					}
				}
				return out, err
			})
		},
	}
	in.addBytes(cmd.Flags())
	keys.add(cmd.Flags())
	cmd.Flags().StringVarP(&output, "output", "o", "", "the file to write, `OUT`, - for standard output")
	e.addNoOverwrite(cmd.Flags())
	return cmd
}

// rewriteTable writes what becomes of the bytes of a table.
func (e *env) rewriteTable(ctx context.Context, file, to string, in *sourceFlags, become func([]byte) ([]byte, error)) error {
	if to == "" {
		return usagef("-o OUT is missing")
	}
	p, name, err := e.readTable(ctx, file, in)
	if err != nil {
		return err
	}
	if p, err = become(p); err != nil {
		return named(err, name)
	}
	return e.write(ctx, "table", to, func(w output) error {
		_, err := w.Write(p)
		return err
	})
}

func newTableKeygen(e *env) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "keygen -o FILE",
		Short: "Make a key",
		Long: `Keygen writes a new random key, 64 hexadecimal digits, to a file that only its owner can read. A file that is there is
never replaced: what was sealed with the key in it would be lost. Encryption and MAC need a key each.`,
		Example: `  spile table keygen -o item.key`,
		Args:    arguments(0, 0),
		RunE: func(*cobra.Command, []string) error {
			if output == "" || output == "-" {
				return usagef("-o FILE is missing; a key is not for standard output")
			}
			return keygen(output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "the `FILE` to write, which must not be there")
	e.addNoOverwrite(cmd.Flags())
	cmd.Flags().Lookup("no-overwrite").Usage = "replace no file, as always"
	return cmd
}

func keygen(path string) (err error) {
	var key [tcb.KeySize]byte
	rand.Read(key[:]) // never fails
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fault.New(fault.Conflict, "", "is there already, and a key is not replaced").In(path)
	}
	if err != nil {
		return fault.New(nil, "", "").In(path).Because(bare(err))
	}
	_, err = f.WriteString(hex.EncodeToString(key[:]) + "\n")
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		os.Remove(path) // this run made it
		return fault.New(nil, "", "").In(path).Because(bare(err))
	}
	return nil
}
