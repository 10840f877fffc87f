//go:build cpuprofile

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
)

// profileFolder is the variable that names the folder where profileCPU writes.
const profileFolder = "EBB_CPU_PROFILE"

// profileCPU writes what the process spends its CPU time on to a file in the folder that EBB_CPU_PROFILE names, until stop.
// `make profile` makes default.pgo of such files.
func profileCPU() (stop func() error, err error) {
	folder := os.Getenv(profileFolder)
	if folder == "" {
		return nil, fmt.Errorf("this build profiles itself: say in %s where to", profileFolder)
	}
	f, err := os.Create(filepath.Join(folder, fmt.Sprintf("%d.pprof", os.Getpid())))
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
