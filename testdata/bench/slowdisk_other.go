//go:build !unix

package main

import (
	"errors"
	"time"
)

func slowSyncs(delay time.Duration) error {
	if delay == 0 {
		return nil
	}
	return errors.New("there is no slow disk on this system")
}
