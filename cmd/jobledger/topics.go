package main

import "embed"

// docs are the pages of the documentation, which help shows.
//
//go:embed docs/*.md
var docs embed.FS
