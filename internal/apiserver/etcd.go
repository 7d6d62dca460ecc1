package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// readyTimeout is how long etcd, the server and each watch cache may take to become ready. It is long, because the machine may
// be busy.
const readyTimeout = 30 * time.Second

// startEtcd starts an etcd with one member in this process, on free loopback ports, and returns
// when it is ready. It does not fsync, because the data of a test need not survive a crash of the machine.
func startEtcd(ctx context.Context, dir string) (*embed.Etcd, error) {
	anyPort := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	config := embed.NewConfig()
	config.Dir = dir
	config.UnsafeNoFsync = true
	config.EnableGRPCGateway = false // it would dial port 0
	config.ListenPeerUrls, config.AdvertisePeerUrls = anyPort, anyPort
	config.ListenClientUrls, config.AdvertiseClientUrls = anyPort, anyPort
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	// A single member elects itself, so etcd's default election timeout of 1 s would only
	// delay the start.
	config.TickMs, config.ElectionMs = 10, 100
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, fmt.Errorf("failed to start etcd: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err = <-etcd.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	etcd.Close()
	return nil, fmt.Errorf("failed to start etcd: %w", err)
}
