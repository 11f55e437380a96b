package series

import "fmt"

// The places that messages name.

func blockPlace(i int) string { return fmt.Sprintf("block %d", i) }

func leafPlace(i int) string { return fmt.Sprintf("leaf %d", i) }
