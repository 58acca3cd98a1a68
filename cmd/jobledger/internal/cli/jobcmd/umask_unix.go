//go:build unix

package jobcmd

import (
	"fmt"
	"syscall"
)

// umaskText is the umask of this process. To read it is to set it.
func umaskText() string {
	mask := syscall.Umask(0o077)
	syscall.Umask(mask)
	return fmt.Sprintf("%04o", mask)
}
