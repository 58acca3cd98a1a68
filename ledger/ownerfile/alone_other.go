//go:build !unix

package ownerfile

import "errors"

// Alone returns an error: the mode does not say who may write.
func Alone(string, ...string) error {
	return errors.New("on this system a ledger does not show who may write it")
}
