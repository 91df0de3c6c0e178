// Package workflows checks what GitHub runs for this repository: its workflows, its actions and Dependabot. It is a module
// of its own because of actionlint, which nothing else needs.
package workflows
