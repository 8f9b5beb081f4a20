package db

type onceTable struct{}
type onceKey struct{}
