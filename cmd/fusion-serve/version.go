package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/fusion-serve/fusion-serve/dsl"
)

func versionCommand(_ context.Context, c *cli, args []string) error {
	if len(args) > 0 {
		return usageError("version takes no arguments")
	}
	fmt.Fprintf(c.stdout, "fusion-serve %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

func referenceCommand(_ context.Context, c *cli, args []string) error {
	if len(args) > 0 {
		return usageError("reference takes no arguments")
	}
	_, err := c.stdout.Write(dsl.Reference())
	return err
}
