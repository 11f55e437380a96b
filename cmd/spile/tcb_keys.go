package main

import (
	"encoding/hex"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/spilehq/spile/fault"
	"github.com/spilehq/spile/tcb"
)

// keyFlags name the keys of tables. A key never stands on the command line, which other users of the machine can see.
type keyFlags struct {
	keyFile    string
	macKeyFile string
}

// The environment variables that hold keys.
const (
	keyVariable    = "SPILE_KEY"
	macKeyVariable = "SPILE_MAC_KEY"
)

func (f *keyFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.keyFile, "key-file", "", "the `FILE` with the encryption key of a table, 64 hexadecimal digits (or $"+keyVariable+")")
	flags.StringVar(&f.macKeyFile, "mac-key-file", "", "the `FILE` with the MAC key of a table (or $"+macKeyVariable+")")
}

// keys reads the keys that are named.
func (f *keyFlags) keys() (k tcb.Keys, err error) {
	if k.Encryption, err = readKey(f.keyFile, "--key-file", keyVariable); err != nil {
		return k, err
	}
	k.MAC, err = readKey(f.macKeyFile, "--mac-key-file", macKeyVariable)
	return k, err
}

// readKey reads one key, nil when it is not named. Its text is in no message.
func readKey(file, flag, variable string) ([]byte, error) {
	text, isSet := os.LookupEnv(variable)
	isSet = isSet && strings.TrimSpace(text) != ""
	from := "$" + variable
	switch {
	case file == "" && !isSet:
		return nil, nil
	case file != "" && isSet:
		return nil, usagef("%s and $%s both name a key: which one?", flag, variable)
	case file != "":
		from = file
		f, err := openNamed(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		p, err := io.ReadAll(io.LimitReader(f, 4096))
		if err != nil {
			return nil, fault.New(nil, "", "").In(file).Because(bare(err))
		}
		text = string(p)
	}
	text = strings.TrimPrefix(text, "\ufeff") // as some editors put it in front
	key, err := hex.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != tcb.KeySize {
		return nil, fault.New(fault.Invalid, "", "is no key: %d characters, want %d hexadecimal digits", len(strings.TrimSpace(text)), 2*tcb.KeySize).In(from)
	}
	return key, nil
}
