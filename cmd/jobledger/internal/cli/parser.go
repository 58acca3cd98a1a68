package cli

import urfave "github.com/urfave/cli/v2"

// The verbs declare their flags and read their values by these names, so only this package knows the parser.
type (
	// Context is a parsed command line: the values of its flags and its arguments.
	Context = urfave.Context
	// Flag is one of a verb's flags.
	Flag = urfave.Flag
	// BoolFlag is a flag without a value.
	BoolFlag = urfave.BoolFlag
	// StringFlag is a flag with a value that is taken as it is.
	StringFlag = urfave.StringFlag
	// StringSliceFlag is a flag that may be repeated; [ListFlag] makes one.
	StringSliceFlag = urfave.StringSliceFlag
)
