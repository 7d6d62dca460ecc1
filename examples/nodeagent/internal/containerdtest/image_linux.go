package containerdtest

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
)

// Image is an image that holds busybox, as /bin/busybox and under the names that a
// shell script is likely to use.
type Image struct {
	// Name is what manifests call it: nginx:1.16.1 means the same as
	// docker.io/library/nginx:1.16.1.
	Name string
	// Command is what a container runs that sets no command.
	Command []string
	// StopSignal is what the runtime sends to stop a container, SIGQUIT for
	// instance; "" means SIGTERM.
	StopSignal string
}

// pause is what every sandbox runs.
func pause() Image { return Image{Name: pauseName, Command: []string{"/bin/sleep", "1000000"}} }

// applets are the names that busybox has in an image.
func applets() []string {
	return []string{"cat", "date", "echo", "false", "kill", "ls", "sh", "sleep", "touch", "true", "wget"}
}

// manifestEntry is an image in manifest.json of docker's archive format, which
// containerd imports.
type manifestEntry struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// imageConfig is what an image cannot do without of its configuration, as the image
// specification of the Open Container Initiative has it.
type imageConfig struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
	Config       struct {
		Cmd        []string `json:",omitempty"`
		StopSignal string   `json:",omitempty"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// archive gives one file with all images in it, which share their only layer.
func archive(busybox string, images []Image) ([]byte, error) {
	layer, err := layerOf(busybox)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"layer.tar": layer}
	var manifest []manifestEntry
	for i, image := range images {
		config, err := json.Marshal(configOf(image, layer))
		if err != nil {
			return nil, fmt.Errorf("failed to write the config of image %q: %w", image.Name, err)
		}
		name := fmt.Sprintf("%d.json", i)
		files[name] = config
		manifest = append(manifest, manifestEntry{Config: name, RepoTags: []string{image.Name}, Layers: []string{"layer.tar"}})
	}
	if files["manifest.json"], err = json.Marshal(manifest); err != nil {
		return nil, fmt.Errorf("failed to write the manifest of the images: %w", err)
	}
	return tarOf(func(w *tar.Writer) error {
		for name, content := range files {
			if err := writeFile(w, name, 0o644, content); err != nil {
				return err
			}
		}
		return nil
	})
}

// configOf describes an image with one layer, by the digest of its tar.
func configOf(image Image, layer []byte) imageConfig {
	config := imageConfig{Architecture: runtime.GOARCH, OS: "linux"}
	config.Config.Cmd = image.Command
	config.Config.StopSignal = image.StopSignal
	config.RootFS.Type = "layers"
	config.RootFS.DiffIDs = []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer))}
	return config
}

// layerOf gives the tar of the file system of every image.
func layerOf(busybox string) ([]byte, error) {
	program, err := os.ReadFile(busybox)
	if err != nil {
		return nil, fmt.Errorf("failed to read busybox: %w", err)
	}
	if err := checkStatic(busybox, program); err != nil {
		return nil, err
	}
	return tarOf(func(w *tar.Writer) error {
		for _, dir := range []string{"bin/", "tmp/"} {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}); err != nil {
				return err
			}
		}
		for _, applet := range applets() {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + applet, Linkname: "busybox"}); err != nil {
				return err
			}
		}
		return writeFile(w, "bin/busybox", 0o755, program)
	})
}

// checkStatic refuses Debian's other busybox, which would look for libraries that an
// image does not have.
func checkStatic(path string, program []byte) error {
	file, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return fmt.Errorf("%s is not a program: %w", path, err)
	}
	if slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		return fmt.Errorf("%s is not static, install the Debian package busybox-static", path)
	}
	return nil
}

// tarOf gives the tar of what write puts into it.
func tarOf(write func(*tar.Writer) error) ([]byte, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	if err := write(w); err != nil {
		return nil, fmt.Errorf("failed to write an archive: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("failed to finish an archive: %w", err)
	}
	return buffer.Bytes(), nil
}

// writeFile puts a file into a tar.
func writeFile(w *tar.Writer, name string, mode int64, content []byte) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}
