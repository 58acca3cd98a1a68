package commandstest

import "jobledger/commands"

// WithToken returns c, a command of an owner, with another token.
func WithToken(c commands.Command, token string) commands.Command {
	switch c := c.(type) {
	case commands.Heartbeat:
		c.Token = token
		return c
	case commands.Succeed:
		c.Token = token
		return c
	case commands.Fail:
		c.Token = token
		return c
	case commands.Release:
		c.Token = token
		return c
	}
	return c
}
