package msglc

import (
	"context"
	"os"
	"time"

	"github.com/spilehq/spile/fault"
)

// lockPause is the time between two tries for a lock: nothing beside what an append takes.
const lockPause = 10 * time.Millisecond

// lockFile takes the advisory lock of the file that has the name path, and waits for it as long as ctx lasts. The lock
// is that of the file and not of its name: when it is there, and the file has been replaced meanwhile, the new one is
// tried. It ends when the result is closed, and with the process, however that ends. The result is nil where there is
// nothing to lock: no such file, no regular one, or a system that has no such locks.
func lockFile(ctx context.Context, path string) (*os.File, error) {
	for {
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			return nil, nil
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, nil
		}
		locked, supported := tryLock(f)
		if !supported {
			f.Close()
			return nil, nil
		}
		if locked {
			mine, err := f.Stat()
			now, err2 := os.Stat(path)
			if err == nil && err2 == nil && os.SameFile(mine, now) {
				return f, nil
			}
		}
		f.Close()
		if locked {
			continue
		}
		select {
		case <-ctx.Done():
			return nil, fault.New(nil, "msglc", "waiting for another append").Because(ctx.Err())
		case <-time.After(lockPause):
		}
	}
}
