//go:build tools

// Package tools names the program to build, so that go.mod keeps what it needs.
package tools

import _ "github.com/pulumi/pulumi/sdk/v3/python/cmd/pulumi-language-python"
