package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/fusion-serve/fusion-serve/schemas"
)

func initCommand(_ context.Context, c *cli, args []string) error {
	rest, err := parse(c.flags("init"), args)
	if err != nil {
		return err
	}
	if len(rest) != 1 {
		return usageError("name the folder to write to")
	}
	dir := rest[0]
	files := schemas.Starter()
	for _, f := range files {
		if _, err := os.Lstat(filepath.Join(dir, f.Name)); err == nil {
			return fmt.Errorf("%s is there already: nothing was written", filepath.Join(dir, f.Name))
		}
	}
	for _, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.Data, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(c.stdout, "wrote", name)
	}
	fmt.Fprintf(c.stdout, "\nNow:\n  fusion-serve test %s\n  fusion-serve serve %s\n", dir, dir)
	return nil
}
