// Package process makes the boot id of a worker process, by which others on the same machine see that it has
// ended.
//
// A boot id is a ULID. Its first half of random bits is not random: it has a digest of what the machine calls
// its own boot and of the namespace of its process ids, and one of when the process began. Elsewhere it is a
// ULID like any other.
//
// Files: process.go, kernel_linux.go and kernel_other.go (what a system says of a process).
//
// Held by TestGoneProcess here, and by TestKilledWorkerIsSilentAtOnce of the program. This package is not
// part of the Go API, and may change in any release.
package process

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
	"sync"

	"github.com/oklog/ulid/v2"
)

// own is this process, as the operating system names it.
var own = sync.OnceValues(func() (machine, began string) { return Machine(), Began(os.Getpid()) })

// NewBoot returns a boot id of this process, another one each time.
func NewBoot() string {
	id := ulid.Make()
	if machine, began := own(); machine != "" && began != "" {
		mark(&id, machine, began)
	}
	return id.String()
}

// mark writes the digests into id: 32 bits for the machine, 16 for the process.
func mark(id *ulid.ULID, machine, began string) {
	binary.BigEndian.PutUint32(id[6:], digest(machine))
	binary.BigEndian.PutUint16(id[10:], uint16(digest(began))) // #nosec G115 -- the lower bits of a digest
}

func digest(text string) uint32 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint32(sum[:])
}

// Gone reports whether the process with this pid, which made boot by [NewBoot] on this machine, has ended.
// If boot was made on another machine, or by another program, it reports false.
func Gone(boot string, pid int) bool {
	id, err := ulid.ParseStrict(boot)
	machine, _ := own()
	if err != nil || machine == "" || pid <= 0 || binary.BigEndian.Uint32(id[6:]) != digest(machine) {
		return false
	}
	if !exists(pid) {
		return true
	}
	began := Began(pid)
	if began == "" { // another user's, and the system does not show it
		return false
	}
	return binary.BigEndian.Uint16(id[10:]) != uint16(digest(began)) // #nosec G115 -- as in mark
}
