package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"
)

// floor is what somebody would write by hand for one tool: the measure of
// what everything else costs. It serves until its standard input ends.
func floor(in io.Reader, out io.Writer) error {
	pool, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL")+"?pool_max_conns=10")
	if err != nil {
		return err
	}
	defer pool.Close()
	http.HandleFunc("POST /item", func(w http.ResponseWriter, r *http.Request) {
		var args struct{ ID int }
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&args); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var item struct {
			ID         int    `json:"id"`
			Name       string `json:"name"`
			PriceCents int    `json:"price_cents"`
			Status     string `json:"status"`
		}
		row := pool.QueryRow(r.Context(), "SELECT id, name, price_cents, status FROM items WHERE id = $1", args.ID)
		if err := row.Scan(&item.ID, &item.Name, &item.PriceCents, &item.Status); err != nil {
			http.Error(w, "no item", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(item)
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "serving on http://%s/item\n", l.Addr())
	go func() { _, _ = io.Copy(io.Discard, in); l.Close() }()
	_ = http.Serve(l, nil) // ends with the listener
	return nil
}
