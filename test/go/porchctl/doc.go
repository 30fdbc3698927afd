// Package porchctl names the version of Porch whose command line and server the tests use; see the tools in go.mod.
package porchctl
