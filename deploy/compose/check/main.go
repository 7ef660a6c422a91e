// Checks docker-compose.yml without Docker: loads it strictly, as Compose does, and looks at what the exporter needs.
//
//	cd deploy/compose/check && go run . ../../../docker-compose.yml
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// What the exporter's service must be granted; docker-compose.yml says why.
var capabilities = []string{"BPF", "CHECKPOINT_RESTORE", "PERFMON", "SYS_PTRACE"}

func main() {
	file := "docker-compose.yml"
	if len(os.Args) > 1 {
		file = os.Args[1]
	}
	project, err := load(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	faults := check(project)
	for _, f := range faults {
		fmt.Fprintln(os.Stderr, f)
	}
	if len(faults) > 0 {
		os.Exit(1)
	}
	fmt.Printf("%s: %d services, no faults\n", file, len(project.Services))
}

// load reads the file with schema validation, interpolation and consistency checks on, and no environment but the file's own.
func load(file string) (*types.Project, error) {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithResolvedPaths(true), cli.WithName("otel-profile-exporter"))
	if err != nil {
		return nil, err
	}
	return options.LoadProject(context.Background())
}

// check returns every fault, not the first only.
func check(project *types.Project) []string {
	var faults []string
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }

	for name, service := range project.Services {
		if service.Image == "" && service.Build == nil {
			fault("%s: neither image nor build", name)
		}
		if service.Build == nil && service.Image != "" && !pinned(service.Image) {
			fault("%s: image %q is not pinned to a version", name, service.Image)
		}
		if service.Privileged {
			fault("%s: privileged; grant capabilities instead", name)
		}
		for _, volume := range service.Volumes {
			if volume.Type == types.VolumeTypeBind {
				exists(fault, name, volume.Source)
			}
		}
		if service.Build != nil {
			exists(fault, name, filepath.Join(service.Build.Context, service.Build.Dockerfile))
		}
	}
	for _, config := range project.Configs {
		if config.File != "" {
			exists(fault, "configs", config.File)
		}
	}

	exporter, ok := project.Services["exporter"]
	if !ok {
		fault("no service named exporter")
		return faults
	}
	if exporter.Pid != "host" {
		fault("exporter: pid is %q; without host it sees no process but its own", exporter.Pid)
	}
	granted := slices.Sorted(slices.Values(exporter.CapAdd))
	if !slices.Equal(granted, capabilities) {
		fault("exporter: cap_add is %v, wanted %v", granted, capabilities)
	}
	if !slices.Contains(project.Services["collector"].Command, "--feature-gates=service.profilesSupport") {
		fault("collector: without --feature-gates=service.profilesSupport it refuses a profiles pipeline")
	}
	return faults
}

func pinned(image string) bool {
	_, tag, ok := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return ok && tag != "latest"
}

func exists(fault func(string, ...any), name, path string) {
	if _, err := os.Stat(path); err != nil {
		fault("%s: %v", name, err)
	}
}
